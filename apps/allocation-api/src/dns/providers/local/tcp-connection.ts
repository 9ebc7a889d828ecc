import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { frameMessage, unframeMessage } from '../../wire/message.ts'
import type { Respond } from './responder.ts'

async function* messagesIn(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let received: Buffer = Buffer.alloc(0)
  for await (const chunk of chunks) {
    received = Buffer.concat([received, chunk])
    for (let next = unframeMessage(received); next; next = unframeMessage(received)) {
      received = next.rest
      yield next.message
    }
  }
}

/**
 * Answers one query at a time, in order: a client that does not read its responses is no longer read from. `idleMs` is
 * the longest time from one answered query to the next. Octets that do not form a query do not keep the connection open.
 * Resolves when the connection is closed; never rejects.
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
          yield frameMessage(response)
          idle.refresh()
        }
      },
      socket,
    )
  } catch {
    // The client closed the connection, or was disconnected.
  } finally {
    clearTimeout(idle)
    socket.destroy()
  }
}
