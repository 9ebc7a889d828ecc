import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { AllocationClient } from '../src/index.ts'

/**
 * Compares the client with bare `fetch`: `node scripts/overhead.ts`. For time, both take turns in one process, in short
 * blocks, so that both see the same machine. For memory, each has a process of its own. The server does nothing but respond.
 */

const ROUNDS = 3
const BLOCKS = 20
const BLOCK_REQUESTS = 200
const MEMORY_REQUESTS = 3_000
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

const runRequests = async (operate: Operate, count: number): Promise<void> => {
  let rest = count
  const work = async (): Promise<void> => {
    while (rest-- > 0) await operate()
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
}

interface Cost {
  /** Milliseconds on the clock. */
  elapsed: number
  /** Microseconds of CPU time. */
  cpu: number
}

/** What both cost for the same number of requests. */
const measureTime = async (bare: Operate, client: Operate): Promise<readonly [Cost, Cost]> => {
  const both = [bare, client].map(operate => ({ operate, cost: { elapsed: 0, cpu: 0 } }))
  for (const { operate } of both) await runRequests(operate, 500)
  for (let block = 0; block < BLOCKS; block += 1) {
    for (const { operate, cost } of block % 2 === 0 ? both : both.toReversed()) {
      const [startedAt, cpu] = [performance.now(), process.cpuUsage()]
      await runRequests(operate, BLOCK_REQUESTS)
      const { user, system } = process.cpuUsage(cpu)
      cost.elapsed += performance.now() - startedAt
      cost.cpu += user + system
    }
  }
  const [first, second] = both
  if (!first || !second) throw new Error('two are compared')
  return [first.cost, second.cost]
}

/** The largest resident memory of this process, in KB. */
const measureMemory = async (operate: Operate): Promise<number> => {
  await runRequests(operate, MEMORY_REQUESTS)
  return process.resourceUsage().maxRSS
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN

const describe = (name: string, unit: string, bare: readonly number[], client: readonly number[]): string => {
  const ratios = client.map((value, round) => value / (bare[round] ?? Number.NaN))
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`
  return `  ${name}: fetch ${median(bare).toFixed(0)} ${unit}, client ${median(client).toFixed(0)} ${unit}, ratio ${median(ratios).toFixed(2)} (${range})\n`
}

const compare = async (): Promise<void> => {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(request.method === 'GET' ? 200 : 201, { 'Content-Type': 'application/json' })
      response.end(request.method === 'GET' ? free : reserved)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const run = async (...args: readonly string[]): Promise<unknown> => {
    const { stdout } = await promisify(execFile)(process.execPath, [fileURLToPath(import.meta.url), url, ...args])
    return JSON.parse(stdout)
  }
  for (const operation of ['check', 'reserve']) {
    const times: (readonly [Cost, Cost])[] = []
    const memory: (readonly [number, number])[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      const variants = [`${operation}, fetch`, `${operation}, client`] as const
      times.push((await run(...variants)) as readonly [Cost, Cost])
      memory.push([(await run(variants[0])) as number, (await run(variants[1])) as number])
    }
    const requests = BLOCKS * BLOCK_REQUESTS
    const perSecond = (index: 0 | 1) => times.map(costs => (1_000 * requests) / costs[index].elapsed)
    const cpu = (index: 0 | 1) => times.map(costs => costs[index].cpu / requests)
    const rss = (index: 0 | 1) => memory.map(sizes => sizes[index])
    process.stdout.write(`${operation}: ${ROUNDS} rounds of ${requests} requests, ${CONCURRENCY} at a time\n`)
    process.stdout.write(describe('throughput', 'requests/s', perSecond(0), perSecond(1)))
    process.stdout.write(describe('CPU', 'µs/request', cpu(0), cpu(1)))
    process.stdout.write(describe('memory', 'KB', rss(0), rss(1)))
  }
  server.close()
}

const createOperate = (variant: string, url: string): Operate => {
  const create = variants[variant]
  if (!create) throw new Error(`no variant ${variant}`)
  return create(url)
}

const [url, first, second] = process.argv.slice(2)
if (url === undefined || first === undefined) await compare()
else if (second === undefined) process.stdout.write(JSON.stringify(await measureMemory(createOperate(first, url))))
else {
  const costs = await measureTime(createOperate(first, url), createOperate(second, url))
  process.stdout.write(JSON.stringify(costs))
}
