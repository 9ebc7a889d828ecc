import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * A process of clients that request a list and read it slowly or not at all: half of them read nothing after the first
 * bytes, half read 8 KiB per second. Over the limit, they retry after the time that the service asks for. It prints
 * `{"msg": "ready"}` when every client has had its first response, and its figures when it is terminated.
 */
const { PORT, LIST_PATH, READERS } = process.env
const READ_INTERVAL_MS = 1_000
const MAX_BYTES_PER_READ = 8_192
/** The clients start within this time. */
const RAMP_MS = 2_000

const counts = { started: 0, rejected: 0, closed: 0, maxRejectionMs: 0, withoutRetryAfter: 0 }

/** Milliseconds until the next attempt. */
const read = (isReading: boolean, onFirstResponse: () => void): Promise<number> => {
  const { promise, resolve } = Promise.withResolvers<number>()
  const requested = performance.now()
  const socket = connect({ port: Number(PORT), host: '127.0.0.1' })
  let timer: NodeJS.Timeout | undefined
  let isAccepted = false
  const end = () => {
    clearInterval(timer)
    socket.destroy()
    if (isAccepted) counts.closed += 1
    onFirstResponse()
    resolve(1_000)
  }
  socket.on('error', () => {}).on('close', end)
  socket.write(`GET ${LIST_PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  socket.once('readable', () => {
    const head = String(socket.read(64) ?? '')
    onFirstResponse()
    if (head.startsWith('HTTP/1.1 200')) {
      isAccepted = true
      counts.started += 1
      if (isReading)
        timer = setInterval(() => socket.read(Math.min(MAX_BYTES_PER_READ, socket.readableLength)), READ_INTERVAL_MS)
      return
    }
    counts.rejected += 1
    counts.maxRejectionMs = Math.max(counts.maxRejectionMs, performance.now() - requested)
    const retryAfter = /retry-after: (\d+)/i.exec(head + String(socket.read() ?? ''))?.[1]
    if (retryAfter === undefined) counts.withoutRetryAfter += 1
    socket.off('close', end)
    socket.destroy()
    resolve(Number(retryAfter ?? 1) * 1_000)
  })
  return promise
}

const runReader = async (index: number, onFirstResponse: () => void): Promise<never> => {
  await sleep((RAMP_MS * index) / Number(READERS))
  for (;;) await sleep(await read(index % 2 === 0, onFirstResponse))
}

await Promise.all(
  Array.from({ length: Number(READERS) }, (_, index) => new Promise<void>(resolve => void runReader(index, resolve))),
)
process.stdout.write(`${JSON.stringify({ msg: 'ready' })}\n`)
const stop = () => {
  process.stdout.write(`${JSON.stringify({ msg: 'stopped', ...counts })}\n`, () => process.exit())
}
process.on('SIGTERM', stop).on('disconnect', stop)
