import { createServer } from 'node:http'

/** Runs as a separate process: the fastest start on the same runtime. */
const server = createServer((_, response) => response.end('{}'))
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  process.stdout.write(`${JSON.stringify({ msg: 'ready', port })}\n`)
})
process.on('SIGTERM', () => process.exit(0))
process.on('disconnect', () => process.exit(0))
