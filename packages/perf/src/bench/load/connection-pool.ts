import type { Answer } from './answer.ts'
import { type Connection, openConnection, type Request } from './connection.ts'

export interface ConnectionPool extends Disposable {
  /** At once: on a connection that is free, or on a new one. */
  send(request: Request): Promise<Answer>
}

export const openConnectionPool = async (port: number, atFirst: number): Promise<ConnectionPool> => {
  const all = await Promise.all(Array.from({ length: atFirst }, () => openConnection(port)))
  const free: Connection[] = [...all]

  const openOneMore = async (): Promise<Connection> => {
    const connection = await openConnection(port)
    all.push(connection)
    return connection
  }
  return {
    async send(request) {
      const connection = free.pop() ?? (await openOneMore())
      const answer = await connection.send(request)
      // One that broke is not used again.
      free.push(connection)
      return answer
    },
    [Symbol.dispose]: () => {
      for (const connection of all) connection.close()
    },
  }
}
