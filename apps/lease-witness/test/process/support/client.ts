import { Agent, request } from 'node:http'
import type { Lease } from '@pool/contract/lease'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'

export interface ClientResponse {
  readonly status: number
  readonly text: string
  /** Of a lease; 0: it has expired. */
  readonly remainingMs: number
}

export interface Client extends Disposable {
  readonly send: (
    method: string,
    path: string,
    headers?: Readonly<Record<string, string>>,
    body?: string,
  ) => Promise<ClientResponse>
}

/** A pool of keep-alive connections that reconnects. A request whose connection breaks rejects; it is not retried. */
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
                text: Buffer.concat(chunks).toString(),
                remainingMs: Number(response.headers['lease-remaining-ms'] ?? 0),
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

export const parseLease = ({ text }: ClientResponse): Lease => JSON.parse(text)

export type WriteBody = { readonly op: 'acquire' | 'renew'; readonly ttlSeconds: number } | 'release'

export const writeLease = (
  client: Client,
  holder: string,
  slot: string,
  generation: number,
  body: WriteBody,
): Promise<ClientResponse> => {
  const headers = { 'If-Match': String(generation), 'X-Holder': holder }
  const path = `/lease/${encodeURIComponent(slot)}`
  return body === 'release'
    ? client.send('DELETE', path, headers)
    : client.send('PUT', path, headers, JSON.stringify(body))
}
