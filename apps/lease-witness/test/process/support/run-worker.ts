import { startWorkerd } from '../../../local/workerd.ts'

/** Runs the worker of the wrangler.toml at the path WORKER until SIGTERM or until the test process exits. */
const { WORKER = '', DATA_DIR = '', BEARER_TOKENS_CSV = '', MAX_REQUESTS_PER_MINUTE } = process.env
const stopped = new Promise<void>(resolve => {
  for (const end of ['SIGTERM', 'disconnect'] as const) process.on(end, () => resolve())
})
{
  const bindings = { BEARER_TOKENS_CSV, ...(MAX_REQUESTS_PER_MINUTE ? { MAX_REQUESTS_PER_MINUTE } : {}) }
  await using running = await startWorkerd(
    WORKER,
    { port: 0, dataDir: DATA_DIR, loopbackHostsOnly: false, bindings },
    line => {
      process.stdout.write(`${line}\n`)
    },
  )
  process.stdout.write(`${JSON.stringify({ msg: 'ready', port: running.port })}\n`)
  await stopped
}
if (process.connected) process.disconnect()
