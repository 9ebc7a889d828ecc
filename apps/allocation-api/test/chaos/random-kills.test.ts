import { setTimeout as sleep } from 'node:timers/promises'
import type { DynadotFault } from '@pool/test-kit/dns/dynadot-double.ts'
import { timed, until } from '@pool/test-kit/poll.ts'
import { createPrng } from '@pool/test-kit/prng.ts'
import { describe, expect, test } from 'vitest'
import { createRecords, type RecordSet } from '../../src/dns/domain/rrset.ts'
import { type Api, startApi } from '../support/api.ts'
import { activeNames } from '../support/consistency.ts'
import { createTestDatabase, missingDsn, testDsn } from '../support/database.ts'
import { pool } from '../support/operations.ts'
import { startCaller } from '../support/random/caller.ts'
import { type StartZoneHost, startDynadotHost, startLocalHost } from '../support/random/hosts.ts'
import { smallPoolEnv } from '../support/replicas.ts'

if (!testDsn) process.stderr.write(`${missingDsn}\n`)

const REPLICAS = 3
const CALLERS = 4
const KILLS = 12
/** Random moments lie as far apart, in milliseconds, besides the time of a start. */
const MOST_BETWEEN_MS = 300
const template = { names: ['@', '*'], ttl: 300 }

const env = {
  ...smallPoolEnv,
  PDM_DRIFT_INTERVAL: '1s',
  PDM_DNS_COMMIT_WAIT: '1s',
  DNSPROVIDER_MANAGED_DOMAINS: pool,
  DNSPROVIDER_RECORD_NAMES: template.names.join(),
}

/** Of calls that are answered: that an order has its effect and no answer is what the kills see to. */
const httpFaults: readonly (readonly [number, DynadotFault | undefined])[] = [
  [80, undefined],
  [8, 'stale'],
  [2, 'busy'],
  [2, 'half text'],
  [2, { status: 500 }],
  [1, { status: 429, retryAfter: '1' }],
  [1, { error: 'too many cooks' }],
]

/** Beside our names, at one of them, and elsewhere; some of the names do not exist at any time. */
const foreignOf = (ttl: number): RecordSet[] => [
  { name: pool, type: 'MX', ttl, values: ['10 mail.example.'] },
  { name: `n0-0.${pool}`, type: 'TXT', ttl, values: ['"beside"'] },
  { name: `*.n1-0.${pool}`, type: 'AAAA', ttl, values: ['2001:db8::1'] },
  { name: `deep.n2-1.${pool}`, type: 'CNAME', ttl, values: ['host.example.'] },
  { name: `www.${pool}`, type: 'A', ttl, values: ['198.51.100.1', '198.51.100.2'] },
]

const textOf = ({ name, type, ttl, values }: RecordSet) => `${name} ${ttl} ${type} ${values}`

/** Kills at random moments under traffic; what it came to in figures. */
const killAtRandom = async (kind: string, startHost: StartZoneHost, seed: number): Promise<string> => {
  await using made = new AsyncDisposableStack()
  const database = await createTestDatabase({ connections: 3 })
  made.defer(() => database.drop())
  const host = made.use(await startHost(database.sql))
  await host.addZone(pool)
  const ttl = host.onlyTtl ?? template.ttl
  const foreign = foreignOf(ttl)
  await host.edit(pool, { remove: [], put: foreign })
  const dice = createPrng(seed)
  const faultDice = dice.fork(1)
  host.httpFaultOf = () => faultDice.pickWeighted(httpFaults)

  const start = () => startApi(database.url, { ...env, ...host.env })
  const alive = new Set<Api>(await Promise.all(Array.from({ length: REPLICAS }, start)))
  made.defer(async () => void (await Promise.all([...alive].map(api => api.process.kill()))))
  let isOver = false
  const callers = Array.from({ length: CALLERS }, (_, number) => {
    const own = dice.fork(2 + number)
    return startCaller({ number, dice: own, anApi: () => own.pick([...alive]), isOver: () => isOver })
  })

  const { ms } = await timed(async () => {
    for (let kills = 0; kills < KILLS; kills += 1) {
      // No fact to wait for: the moment is to be any.
      await sleep(dice.below(MOST_BETWEEN_MS))
      const victim = dice.pick([...alive])
      alive.delete(victim)
      await victim.process.kill()
      alive.add(await start())
    }
  })
  isOver = true
  await Promise.all(callers.map(caller => caller.ended))
  host.httpFaultOf = () => undefined

  const wanted = async () =>
    [
      ...foreign,
      ...(await activeNames(database.sql)).flatMap(({ subdomain, address }) =>
        createRecords(`${subdomain}.${pool}`, address, { ...template, ttl }),
      ),
    ]
      .map(textOf)
      .sort()
  const present = async () => (await host.records(pool)).map(textOf).sort()
  const comparedAt = async () => {
    const [zone] = await database.sql<{ at: Date | null; due: number }[]>`
      select drift_checked_at as at, (select count(*) from dns_names where applied_version < version) as due
      from dns_zones where zone = ${pool}`
    return zone?.due === 0 ? (zone.at?.getTime() ?? 0) : undefined
  }
  const { ms: restMs } = await timed(() =>
    until('the zone is as desired', async () => {
      const isDone = (await comparedAt()) !== undefined
      return isDone && JSON.stringify(await present()) === JSON.stringify(await wanted())
    }).catch(() => {}),
  )
  expect(await present()).toEqual(await wanted())
  // Nothing is on its way any more that would undo it: two comparisons later it is the same.
  for (let times = 0; times < 2; times += 1) {
    const before = (await comparedAt()) ?? 0
    await until('the zone is compared again', async () => ((await comparedAt()) ?? 0) > before)
  }
  expect(await present()).toEqual(await wanted())

  const told = new Map(callers.flatMap(caller => [...caller.told]))
  const rows = await database.sql<{ subdomain: string; state: string; token: string; address: string | null }[]>`
    select subdomain, state, reservation_token as token, host(load_balancer_ip) as address from pool_allocations`
  const unanswered = new Map(callers.flatMap(caller => [...caller.unanswered]))
  const known = rows.filter(row => !unanswered.has(row.subdomain))
  expect(
    known
      .map(({ subdomain, state, token, address }) => ({ subdomain, state, token, ...(address && { address }) }))
      .sort(byName),
  ).toEqual(
    [...told]
      .flatMap(([subdomain, { state, ...rest }]) => (state === 'free' ? [] : [{ subdomain, state, ...rest }]))
      .sort(byName),
  )
  expect(callers.flatMap(caller => caller.oddities)).toEqual([])
  const requests = callers.reduce((sum, caller) => sum + caller.requests, 0)
  return `${kind} ${KILLS} in ${(ms / 1_000).toFixed(1)} s, ${requests} requests, ${unanswered.size} left unanswered, at rest after ${(restMs / 1_000).toFixed(1)} s`
}

const byName = (a: { subdomain: string }, b: { subdomain: string }) => (a.subdomain < b.subdomain ? -1 : 1)

describe.skipIf(!testDsn)('kill -9 at random moments', () => {
  test(`${2 * KILLS} times under traffic: what was answered is so, and the zone has that and what is foreign`, {
    timeout: 180_000,
  }, async () => {
    const told = await Promise.all([
      killAtRandom('local', startLocalHost, 1),
      killAtRandom('dynadot', startDynadotHost, 2),
    ])
    process.stdout.write(`random kills: ${told.join('; ')}\n`)
  })
})
