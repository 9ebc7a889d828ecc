import { AllocationClient } from '@pool/client'
import { LeaseClient } from '@pool/client/leases'
import { createShapedNetwork, startAttack } from '@pool/test-kit/hostile-clients.ts'
import { encodeRequest, HttpConnection } from '@pool/test-kit/http1.ts'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'
import { createMemoryCgroup, type MemoryCgroup, missingMemoryCgroup } from '@pool/test-kit/memory-cgroup.ts'
import { timed, until } from '@pool/test-kit/poll.ts'
import { isProof, proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Service, startApi, startWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { poolPath } from '../support/service.ts'

const CONNECTIONS = proofSize(10_000, 4_000)
const MANY = 100
const MEGABITS_PER_SECOND = 800
const AUTHORIZATION = [`Authorization: Bearer ${TOKEN}`]

const network = isProof && !missingMemoryCgroup ? createShapedNetwork(MEGABITS_PER_SECOND) : undefined
afterAll(() => network?.[Symbol.dispose]())

/** What a connection sends, and how many addresses the connections have. */
type Bytes = readonly [what: string, bytes: Buffer, addresses: number]

const halfBody = (method: string, path: string, headers: readonly string[] = []): Buffer =>
  Buffer.concat([
    encodeRequest({ method, path, headers: ['Content-Length: 65500', ...headers] }),
    Buffer.alloc(65_000, ' '),
  ])
const HALF_HEAD = Buffer.from(`GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(15_000)}`)
const read = (path: string, headers: readonly string[] = []): Buffer => encodeRequest({ path, headers })
const OF_BOTH: readonly Bytes[] = [
  ['half-sent heads', HALF_HEAD, MANY],
  ['connections without a request', Buffer.alloc(0), MANY],
  ['half-sent bodies of unknown routes', halfBody('POST', '/nowhere'), MANY],
]

interface Target {
  readonly cgroup: MemoryCgroup
  readonly service: Service
  /** Throw or resolve with false until they get the response that they need. */
  readonly duringAttacks: Readonly<Record<string, () => Promise<boolean>>>
  readonly afterwards: () => Promise<unknown>
}

/** On a connection of its own, as a probe of Kubernetes. */
const isServed = async (port: number, path: string, headers: readonly string[] = []): Promise<boolean> => {
  using connection = await HttpConnection.open(port)
  return (await connection.send(encodeRequest({ path, headers }))).status === 200
}

const succeeds = (work: () => Promise<unknown>) => () =>
  work().then(
    result => result !== false,
    () => false,
  )

const describeTarget = (name: string, mebibytes: number, start: () => Promise<Target>, attacks: readonly Bytes[]) =>
  describe.skipIf(missingMemoryCgroup)(`${name} with ${mebibytes} MiB ${missingMemoryCgroup ?? ''}`, () => {
    let target: Target
    beforeAll(async () => {
      target = await start()
    })
    afterAll(async () => {
      await target.service.process.stop()
      target.cgroup[Symbol.dispose]()
    })

    test.for(attacks)(
      '%s kill nothing, keep no probe and no operator out, and pass',
      async ([what, bytes, addresses]) => {
        const { service, cgroup, duringAttacks, afterwards } = target
        const figures: string[] = []
        const measure = async (fact: string, work: () => Promise<unknown>) => {
          const { ms } = await timed(() => until(fact, succeeds(work)))
          return Math.round(ms)
        }
        {
          await using attack = startAttack({ port: service.port, bytes, connections: CONNECTIONS, addresses, network })
          const slowest: Record<string, number> = {}
          for (let rounds = 0; rounds < 5 || !attack.isComplete(); rounds += 1) {
            for (const [fact, work] of Object.entries(duringAttacks))
              slowest[fact] = Math.max(slowest[fact] ?? 0, await measure(fact, work))
          }
          for (const [fact, ms] of Object.entries(slowest)) figures.push(`${fact} after at most ${ms} ms`)
        }
        figures.push(`clients afterwards after ${await measure('clients are served again', afterwards)} ms`)
        reportProof(`${name}: ${CONNECTIONS} ${what}: ${figures.join(', ')}; peak ${cgroup.peakMib} MiB`)
        expect(cgroup.kills).toBe(0)
      },
    )

    test('and stops as always', async () => {
      expect(await target.service.process.stop()).toEqual({ code: 0, signal: null })
    })
  })

const databases: TestDatabase[] = []
const createDatabase = async (schema: boolean): Promise<TestDatabase> => {
  const database = await createTestDatabase({ schema, connections: 2 })
  databases.push(database)
  return database
}
afterAll(() => Promise.all(databases.map(database => database.drop())))

const LIST = `${poolPath}/list`
const HALF_RESERVATION = halfBody('POST', `${poolPath}/reserve`)

describeTarget(
  'the API',
  // As in infra/chart/values.yaml.
  384,
  async () => {
    const database = await createDatabase(true)
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
      select 'pool.test', 'n' || n, 'reserved', now(), now() + interval '1 hour', sha256(gen_random_uuid()::text::bytea),
        repeat(chr(128640), 253)
      from generate_series(1, 20000) n`
    const cgroup = createMemoryCgroup('pool-api', 384)
    const service = await cgroup.run(() => startApi(database.url, { PDM_OPERATOR_TOKENS: TOKEN }))
    const operatorPort = Number(new URL(service.operatorUrl ?? '').port)
    const client = new AllocationClient({ baseUrl: service.url })
    return {
      cgroup,
      service,
      duringAttacks: {
        '/livez': () => isServed(service.port, '/livez'),
        'the operators list': () => isServed(operatorPort, `${LIST}?limit=10`, AUTHORIZATION),
      },
      afterwards: () => client.checkName({ domain: 'pool.test', sub: 'acme' }),
    }
  },
  [
    ...OF_BOTH,
    ['half-sent bodies from one address', HALF_RESERVATION, 1],
    ['half-sent bodies from many addresses', HALF_RESERVATION, MANY],
    ['slow readers of a list', read(LIST), MANY],
    ['slow readers of a file', read('/docs/swagger-ui-bundle.js'), MANY],
  ],
)

const SLOT = '/lease/attacked'

describeTarget(
  'the witness on Postgres',
  256,
  async () => {
    const database = await createDatabase(false)
    const cgroup = createMemoryCgroup('pool-witness', 256)
    const service = await cgroup.run(() => startWitness(database.url))
    const client = new LeaseClient({ baseUrl: service.url, token: TOKEN })
    return {
      cgroup,
      service,
      duringAttacks: { '/healthz': () => isServed(service.port, '/healthz') },
      afterwards: () => client.read('attacked'),
    }
  },
  [
    ...OF_BOTH,
    ['half-sent bodies without a token', halfBody('PUT', SLOT), MANY],
    ['half-sent bodies with a token', halfBody('PUT', SLOT, ['If-Match: 0', 'X-Holder: a', ...AUTHORIZATION]), MANY],
    ['waits with a token', read(`${SLOT}?waitSeconds=30`, AUTHORIZATION), MANY],
  ],
)
