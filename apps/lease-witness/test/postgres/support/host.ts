import { Agent, type IncomingMessage, request as sendRequest } from 'node:http'
import { Readable } from 'node:stream'
import { listen } from '@pool/runtime/service/http-server'
import { vi } from 'vitest'
import { createApp } from '../../../src/app.ts'
import type { LeaseState } from '../../../src/lease/lease.ts'
import { openLeases } from '../../../src/node/leases.ts'
import { toSlotKey } from '../../../src/postgres/repository.ts'
import { OTHER_TOKEN, TOKEN } from '../../http/support/client.ts'
import { installHost, type WitnessHost, type WitnessRequest, type WitnessSettings } from '../../http/support/host.ts'
import { createTestDatabase, TIMEOUT_MS } from './database.ts'
import { replaceLeaseClock } from './test-clock.ts'

const DEFAULT_SETTINGS = { BEARER_TOKENS_CSV: `${TOKEN},${OTHER_TOKEN}`, LOG_LEVEL: 'error' }

const agent = new Agent({ keepAlive: true })

/** Header values in UTF-8, as the Workers runtime encodes them. */
const toBytes = (headers: WitnessRequest['headers']): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Buffer.from(value).toString('latin1')]))

const toResponse = async (message: IncomingMessage): Promise<Response> => {
  const chunks: Buffer[] = []
  for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk)
  const headers = new Headers()
  for (let i = 0; i + 1 < message.rawHeaders.length; i += 2) {
    headers.append(message.rawHeaders[i] ?? '', message.rawHeaders[i + 1] ?? '')
  }
  return new Response(chunks.length === 0 ? null : Buffer.concat(chunks), { status: message.statusCode ?? 0, headers })
}

const sendTo = (port: number, { method, path: target, headers, body, signal }: WitnessRequest): Promise<Response> =>
  new Promise((resolve, reject) => {
    const { pathname, search } = new URL(target, 'http://witness.test')
    // Node sends no length with the body of a DELETE.
    const length =
      body === undefined || body instanceof ReadableStream ? {} : { 'Content-Length': Buffer.byteLength(body) }
    const options = {
      agent,
      port,
      method,
      path: pathname + search,
      headers: { ...toBytes(headers), ...length },
      ...(signal ? { signal } : {}),
    }
    const sent = sendRequest(options, message => toResponse(message).then(resolve, reject))
    sent.on('error', reject)
    if (body instanceof ReadableStream) Readable.fromWeb(body).pipe(sent)
    else sent.end(body)
  })

const toRow = (slot: string, lease: LeaseState) => ({
  slot: toSlotKey(slot),
  holder: lease.kind === 'held' ? lease.holder : null,
  acquired_at: lease.acquiredAt,
  written_at: lease.writtenAt,
  expires_at: lease.kind === 'held' ? lease.expiresAt : null,
  generation: lease.generation,
  generation_base: 0,
  transition_count: 0,
  value: (lease.kind === 'held' && lease.value) || null,
})

/** One service, behind a listener for each combination of settings. */
const startHost = async (): Promise<WitnessHost> => {
  const { url, sql } = await createTestDatabase({ connections: 1 })
  const services = await openLeases({
    database: { url, listenUrl: url, usesTls: false, poolSize: 4, timeoutMs: TIMEOUT_MS },
    settings: DEFAULT_SETTINGS,
    allowsLostWrites: false,
  })
  const { stopAt } = await replaceLeaseClock(sql)
  let clock: number | undefined
  let isSet: Promise<void> | undefined
  /** Follows `fakeClock`. Concurrent requests all wait for it. */
  const setClock = async () => {
    const ms = vi.isFakeTimers() ? Date.now() : undefined
    if (ms !== clock) isSet = stopAt(ms)
    clock = ms
    await isSet
  }
  const ports = new Map<string, Promise<number>>()
  const getPort = (settings: WitnessSettings): Promise<number> => {
    const key = JSON.stringify(Object.entries(settings).map(([name, value]) => [name, value ?? null]))
    const start = async () => {
      const app = createApp({ ...DEFAULT_SETTINGS, ...settings } as typeof DEFAULT_SETTINGS, services)
      return (await listen(app, 0, { malformedRequestCode: 'invalid-request' })).port
    }
    const port = ports.get(key) ?? start()
    ports.set(key, port)
    return port
  }
  return {
    async send(request, settings) {
      await setClock()
      return sendTo(await getPort(settings), request)
    },
    async seed(slot, lease) {
      const row = toRow(slot, lease)
      await sql`insert into leases ${sql(row)} on conflict (slot) do update set ${sql(row)}`
    },
    readStored: async slot => [
      await sql`select * from leases where slot = ${toSlotKey(slot)}`,
      await sql`select * from lease_history where slot = ${toSlotKey(slot)}`,
    ],
    countStored: async () => (await sql`select 1 from leases`).length,
    countWaiters: async slot => services.waits.countWaiters(slot),
    writeCopy: async () => {},
  }
}

/** The test files of a process share the host. The database ends with the server. */
const shared: typeof globalThis & { leaseHost?: Promise<WitnessHost> } = globalThis
shared.leaseHost ??= startHost()
installHost(await shared.leaseHost)
