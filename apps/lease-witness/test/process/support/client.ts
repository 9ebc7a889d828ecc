import { Agent, request } from 'node:http'
import type { Lease } from '@pool/contract/lease'
import { TOKEN } from './witness.ts'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

export interface Client extends Disposable {
  readonly send: (
    method: string,
    path: string,
    headers?: Readonly<Record<string, string>>,
    body?: string,
  ) => Promise<Answer>
}

/** A client with connections of its own that are kept alive. A connection that breaks rejects; nothing is retried. */
export const createClient = (port: number, connections = 1): Client => {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  return {
    send: (method, path, headers = {}, body) =>
      new Promise((resolve, reject) => {
        const sent = request(
          { host: '127.0.0.1', port, agent, method, path, headers: { Authorization: `Bearer ${TOKEN}`, ...headers } },
          response => {
            const chunks: Buffer[] = []
            response.on('data', (chunk: Buffer) => chunks.push(chunk))
            response.on('error', reject)
            response.on('end', () =>
              resolve({
                status: response.statusCode ?? 0,
                headers: response.headers,
                text: Buffer.concat(chunks).toString(),
              }),
            )
          },
        )
        sent.on('error', reject)
        sent.end(body)
      }),
    [Symbol.dispose]: () => agent.destroy(),
  }
}

export const leaseOf = ({ text }: Answer): Lease => JSON.parse(text)
