// Ends when the process runs no deployment, or no longer accepts connections, or after the timeout of a deployment: the
// service itself then interrupts what still runs.
const isIdle = async () => {
  try {
    const response = await fetch('http://127.0.0.1:8080/metrics')
    return /^pdm_deployments_active 0$/m.test(await response.text())
  } catch (error) {
    return error.cause?.code === 'ECONNREFUSED'
  }
}
const poll = async () => {
  if (!(await isIdle())) setTimeout(poll, 2_000)
}
setTimeout(() => process.exit(), 60_000 * Number.parseInt(process.env.PDM_DEPLOYMENT_TIMEOUT, 10)).unref()
void poll()
