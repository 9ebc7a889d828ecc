import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import type { Respond } from './responder.ts'

/** RFC 1035 section 4.2.2: over TCP each message comes after its length, cut anywhere or joined to others. */
async function* messagesIn(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held = Buffer.alloc(0)
  for await (const chunk of chunks) {
    held = Buffer.concat([held, chunk])
    while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
      const end = 2 + held.readUInt16BE(0)
      yield held.subarray(2, end)
      held = held.subarray(end)
    }
  }
}

const framed = (message: Buffer): Buffer => {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  return Buffer.concat([length, message])
}

/**
 * Answers one query at a time, in order, so that a client that does not read its answers stops being read. `idleMs` runs
 * from one answered query to the next: octets that make no query, however often they come, do not hold the connection.
 * Resolves when the connection is gone; never rejects.
 */
export const serveTcpConnection = async (socket: Socket, respond: Respond, idleMs: number): Promise<void> => {
  const idle = setTimeout(() => socket.destroy(), idleMs)
  socket.on('error', () => {})
  try {
    await pipeline(
      socket,
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const message of messagesIn(chunks)) {
          const response = await respond(message, 'tcp')
          if (!response) continue
          yield framed(response)
          idle.refresh()
        }
      },
      socket,
    )
  } catch {
    // The client went away or was cut off: its loss alone.
  } finally {
    clearTimeout(idle)
    socket.destroy()
  }
}
