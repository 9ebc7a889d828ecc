import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from '@pool/test-kit/poll.ts'
import type { Backend } from '../../../src/config/terraform.ts'

/** A state with a lock, for Terraform's `http` backend: https://developer.hashicorp.com/terraform/language/backend/http */
export interface StateServer {
  readonly backend: Backend
  /** The ID of the lock; null: not locked. */
  lockId(): string | null
  lock(id: string): void
  unlock(): void
  /** From now on, responds 503 to this method. */
  reject(method: string): void
  state(): string | null
  /** The methods of the requests so far. */
  readonly methods: readonly string[]
  close(): void
}

export const startStateServer = async (): Promise<StateServer> => {
  let state: string | null = null
  let lock: string | null = null
  let rejected: string | null = null
  const methods: string[] = []
  const handle = (method: string, body: string): [status: number, body: string] => {
    if (method === rejected) return [503, 'Maintenance']
    switch (method) {
      case 'LOCK':
        if (lock !== null) return [423, lock]
        lock = body
        return [200, '']
      case 'UNLOCK':
        // As in GitLab, a forced unlock has no body.
        lock = null
        return [200, '']
      case 'GET':
        return state === null ? [404, ''] : [200, state]
      default:
        state = body
        return [200, '']
    }
  }
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', chunk => {
      body += chunk
    })
    request.on('end', () => {
      methods.push(request.method ?? '')
      const [status, text] = handle(request.method ?? '', body)
      response.writeHead(status).end(text)
    })
  }).listen(0, '127.0.0.1')
  await until('it listens', () => server.listening)
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/{deployment}`
  return {
    backend: { type: 'http', settings: { address, lock_address: address, unlock_address: address, retry_max: 0 } },
    lockId: () => lock && JSON.parse(lock).ID,
    lock: id => {
      lock = JSON.stringify({ ID: id, Operation: 'OperationTypeApply', Who: 'someone@elsewhere' })
    },
    unlock: () => {
      lock = null
    },
    reject: method => {
      rejected = method
    },
    state: () => state,
    methods,
    close: () => server.close(),
  }
}
