import { serve } from '@hono/node-server'
import { Hono } from 'hono'

/** Runs as a separate process: the lowest cost of a request on the same framework, adapter and runtime. */
const app = new Hono()
app.get('/', c => c.json({ available: true }))
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  process.stdout.write(`${JSON.stringify({ msg: 'ready', port })}\n`)
})
process.on('SIGTERM', () => process.exit(0))
process.on('disconnect', () => process.exit(0))
