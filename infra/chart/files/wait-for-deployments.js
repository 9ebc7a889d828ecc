// Ends when the process runs no deployment, or no longer accepts connections.
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
void poll()
