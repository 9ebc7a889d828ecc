import { HttpConnection } from './http1.ts'

/** The bearer token of the witness under test. */
export const TOKEN = 'token-of-region-a-0123456789abcdef'

export interface LeaseRequest {
  readonly method: 'GET' | 'PUT' | 'DELETE'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface LeaseResponse {
  readonly status: number
  /** The entity tag as received; empty if there was none. */
  readonly tag: string
  readonly text: string
}

export interface LeaseConnection extends Disposable {
  /** One request at a time. Its bytes are in the kernel's buffer when this returns: a race needs all of them sent first. */
  readonly send: (request: LeaseRequest) => Promise<LeaseResponse>
}

const encode = ({ method, path, headers = {}, body = '' }: LeaseRequest): string => {
  let head = `${method} ${path} HTTP/1.1\r\nHost: witness\r\nAuthorization: Bearer ${TOKEN}\r\n`
  for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`
  // The bodies of the lease tests are ASCII: a character is a byte.
  if (method === 'PUT') head += `Content-Length: ${body.length}\r\n`
  return `${head}\r\n${body}`
}

const openLeaseConnection = async (port: number): Promise<LeaseConnection> => {
  const connection = await HttpConnection.open(port)
  return {
    async send(request) {
      const { status, headers, text } = await connection.send(encode(request))
      return { status, tag: headers.get('etag') ?? '', text }
    },
    [Symbol.dispose]: () => connection.close(),
  }
}

export const openLeaseConnections = (port: number, count: number): Promise<LeaseConnection[]> =>
  Promise.all(Array.from({ length: count }, () => openLeaseConnection(port)))
