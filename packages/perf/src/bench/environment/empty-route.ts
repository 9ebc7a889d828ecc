import { listen } from '@pool/node-service/http-server'
import { Hono } from 'hono'

/** Runs as a separate process: routes at the API's paths that do nothing. */
const app = new Hono()
app.get('/api/v1/pool/:domain/check', c => c.json({ available: true }))
// The body is read, as the API must do. An unread body costs more: the adapter has to drain it.
app.post('/api/v1/pool/:domain/:verb', async c => {
  await c.req.arrayBuffer()
  return c.json({ available: true })
})

const { port } = await listen(app, 0, { malformedRequestCode: 'invalid-format' })
process.on('SIGTERM', () => process.exit(0))
process.on('disconnect', () => process.exit(0))
process.stdout.write(`${JSON.stringify({ msg: 'ready', port })}\n`)
