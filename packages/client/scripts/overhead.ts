import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { AllocationClient } from '../src/index.ts'

/**
 * Compares the client with bare `fetch`: `node scripts/overhead.ts`. Each measurement is a process of its own, and the
 * two take turns, so that both see the same machine. The server does nothing but respond.
 */

const ROUNDS = 5
const REQUESTS = 5_000
const CONCURRENCY = 16

const free = JSON.stringify({ available: true, fqdn: 'acme.pool.test' })
const reserved = JSON.stringify({
  poolDomain: 'pool.test',
  subdomain: 'acme',
  state: 'reserved',
  reservedAt: '2026-01-31T12:00:00.000Z',
  expiresAt: '2026-01-31T12:10:00.000Z',
  createdBy: '',
  reservationToken: '2b1c7a3e-6a55-4a0e-8a3d-0d3b9f0f4f11',
})

type Operate = () => Promise<unknown>

const variants: Readonly<Record<string, (url: string) => Operate>> = {
  'check, fetch': url => async () => {
    const response = await fetch(`${url}/api/v1/pool/pool.test/check?sub=acme`)
    if (response.status !== 200) throw new Error(`status ${response.status}`)
    return await response.json()
  },
  'check, client': url => {
    const client = new AllocationClient({ baseUrl: url })
    return () => client.checkName({ domain: 'pool.test', sub: 'acme' })
  },
  'reserve, fetch': url => async () => {
    const response = await fetch(`${url}/api/v1/pool/pool.test/reserve`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID() },
      body: JSON.stringify({ subdomain: 'acme' }),
    })
    if (response.status !== 201) throw new Error(`status ${response.status}`)
    return await response.json()
  },
  'reserve, client': url => {
    const client = new AllocationClient({ baseUrl: url })
    return () => client.reserveName({ domain: 'pool.test', subdomain: 'acme' })
  },
}

interface Measurement {
  readonly perSecond: number
  /** The largest resident memory of the process, in KB. */
  readonly maxRss: number
  readonly cpuMicrosPerRequest: number
}

const measure = async (operate: Operate): Promise<Measurement> => {
  let rest = 1_000
  const work = async (): Promise<void> => {
    while (rest-- > 0) await operate()
  }
  const runAll = () => Promise.all(Array.from({ length: CONCURRENCY }, work))
  await runAll()
  rest = REQUESTS
  const [startedAt, cpu] = [performance.now(), process.cpuUsage()]
  await runAll()
  const seconds = (performance.now() - startedAt) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return {
    perSecond: REQUESTS / seconds,
    maxRss: process.resourceUsage().maxRSS,
    cpuMicrosPerRequest: (user + system) / REQUESTS,
  }
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN

const compare = async (): Promise<void> => {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(request.method === 'GET' ? 200 : 201, { 'Content-Type': 'application/json' })
      response.end(request.method === 'GET' ? free : reserved)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const run = async (variant: string): Promise<Measurement> => {
    const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(import.meta.url), variant, url])
    return JSON.parse(stdout)
  }
  for (const operation of ['check', 'reserve']) {
    const rounds: { bare: Measurement; client: Measurement }[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      rounds.push({ bare: await run(`${operation}, fetch`), client: await run(`${operation}, client`) })
    }
    const describe = (name: string, unit: string, key: keyof Measurement): string => {
      const [bare, client] = [
        median(rounds.map(({ bare }) => bare[key])),
        median(rounds.map(({ client }) => client[key])),
      ]
      const ratios = rounds.map(round => round.client[key] / round.bare[key])
      const [least, most] = [Math.min(...ratios), Math.max(...ratios)]
      return `  ${name}: fetch ${bare.toFixed(0)} ${unit}, client ${client.toFixed(0)} ${unit}, ratio ${median(ratios).toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)})\n`
    }
    process.stdout.write(`${operation}: ${ROUNDS} rounds of ${REQUESTS} requests, ${CONCURRENCY} at a time\n`)
    process.stdout.write(describe('throughput', 'requests/s', 'perSecond'))
    process.stdout.write(describe('CPU', 'µs/request', 'cpuMicrosPerRequest'))
    process.stdout.write(describe('memory', 'KB', 'maxRss'))
  }
  server.close()
}

const [variant, url] = process.argv.slice(2)
if (variant === undefined || url === undefined) await compare()
else {
  const create = variants[variant]
  if (!create) throw new Error(`no variant ${variant}`)
  process.stdout.write(JSON.stringify(await measure(create(url))))
}
