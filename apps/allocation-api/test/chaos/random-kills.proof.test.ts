import { setTimeout as sleep } from 'node:timers/promises'
import type { DynadotFault } from '@pool/test-kit/dns/dynadot-double.ts'
import { timed, until } from '@pool/test-kit/poll.ts'
import { createPrng } from '@pool/test-kit/prng.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Api, smallPoolEnv, startApi } from '@pool/test-kit/services.ts'
import { describe, expect, test } from 'vitest'
import { createRecords, isAtOrBelow, type RecordSet } from '../../src/dns/domain/rrset.ts'
import { activeNames } from '../support/consistency.ts'
import { createTestDatabase } from '../support/database.ts'
import { pool } from '../support/operations.ts'
import { startCaller } from '../support/random/caller.ts'
import { type StartZoneHost, startDynadotHost, startLocalHost } from '../support/random/hosts.ts'
import { tokenDigest } from '../support/token-repository.ts'

const REPLICAS = Math.min(3, proofSize(3, 2))
const CALLERS = 4
const KILLS_PER_PROVIDER = proofSize(25, 3)
/** The longest pause before a kill, in addition to the duration of a start. */
const MAX_PAUSE_MS = 300
const template = { names: ['@', '*'], ttl: 300 }

const env = {
  ...smallPoolEnv,
  PDM_DRIFT_INTERVAL: '1s',
  PDM_DNS_COMMIT_WAIT: '1s',
  // On a busy machine, no statement ends with a 503, which the callers do not expect.
  PDM_DATABASE_TIMEOUT: '30s',
  DNSPROVIDER_MANAGED_DOMAINS: pool,
  DNSPROVIDER_RECORD_NAMES: template.names.join(),
}

/** Only faults with a response: an effect without a response comes from the kills. */
const httpFaults: readonly (readonly [number, DynadotFault | undefined])[] = [
  [80, undefined],
  [8, 'stale'],
  [2, 'busy'],
  [2, 'truncated body'],
  [2, { status: 500 }],
  [1, { status: 429, retryAfter: '1' }],
  [1, { error: 'too many cooks' }],
]

/** Foreign records at the managed names, beside them and below them. Some of these names are never reserved. */
const createForeignRecords = (ttl: number): RecordSet[] => [
  { name: pool, type: 'MX', ttl, values: ['10 mail.example.'] },
  { name: `n0-0.${pool}`, type: 'TXT', ttl, values: ['"beside"'] },
  { name: `*.n1-0.${pool}`, type: 'AAAA', ttl, values: ['2001:db8::1'] },
  { name: `deep.n2-1.${pool}`, type: 'CNAME', ttl, values: ['host.example.'] },
  { name: `www.${pool}`, type: 'A', ttl, values: ['198.51.100.1', '198.51.100.2'] },
]

const format = ({ name, type, ttl, values }: RecordSet) => `${name} ${ttl} ${type} ${values}`

/** Kills replicas at random moments under traffic, checks the result, and returns the figures. */
const killAtRandom = async (kind: string, startHost: StartZoneHost, seed: number): Promise<string> => {
  await using cleanup = new AsyncDisposableStack()
  const database = await createTestDatabase({ connections: 3 })
  cleanup.defer(() => database.drop())
  const host = cleanup.use(await startHost(database.sql))
  await host.addZone(pool)
  const ttl = host.fixedTtl ?? template.ttl
  const foreign = createForeignRecords(ttl)
  await host.edit(pool, { remove: [], put: foreign })
  const prng = createPrng(seed)
  const faultPrng = prng.fork(1)
  host.nextHttpFault = () => faultPrng.pickWeighted(httpFaults)

  const start = () => startApi(database.url, { ...env, ...host.env })
  const alive = new Set<Api>(await Promise.all(Array.from({ length: REPLICAS }, start)))
  cleanup.defer(async () => void (await Promise.all([...alive].map(api => api.process.kill()))))
  let isOver = false
  const callers = Array.from({ length: CALLERS }, (_, number) => {
    const callerPrng = prng.fork(2 + number)
    return startCaller({ number, prng: callerPrng, pickApi: () => callerPrng.pick([...alive]), isOver: () => isOver })
  })

  const { ms } = await timed(async () => {
    for (let kills = 0; kills < KILLS_PER_PROVIDER; kills += 1) {
      // A random moment, so there is no condition to wait for.
      await sleep(prng.below(MAX_PAUSE_MS))
      const victim = prng.pick([...alive])
      alive.delete(victim)
      await victim.process.kill()
      alive.add(await start())
    }
  })
  isOver = true
  await Promise.all(callers.map(caller => caller.ended))
  host.nextHttpFault = () => undefined

  /** The foreign records at and below names that an active holder has released. */
  const doomedRecords = async () => {
    const released = await database.sql<{ subdomain: string }[]>`
      select distinct subdomain from allocation_history where event = 'released' and from_state = 'active'`
    return foreign.filter(set => released.some(({ subdomain }) => isAtOrBelow(set.name, `${subdomain}.${pool}`)))
  }
  const expectedRecords = async () => {
    const doomed = await doomedRecords()
    return [
      ...foreign.filter(set => !doomed.includes(set)),
      ...(await activeNames(database.sql)).flatMap(({ subdomain, address }) =>
        createRecords(`${subdomain}.${pool}`, address, { ...template, ttl }),
      ),
    ]
      .map(format)
      .sort()
  }
  const actualRecords = async () => (await host.records(pool)).map(format).sort()
  const lastDriftCheckAt = async () => {
    const [zone] = await database.sql<{ at: Date | null; due: number }[]>`
      select drift_checked_at as at, (select count(*) from dns_names where applied_version < version) as due
      from dns_zones where zone = ${pool}`
    return zone?.due === 0 ? (zone.at?.getTime() ?? 0) : undefined
  }
  const { ms: quiescentMs } = await timed(() =>
    until('the zone has the desired records', async () => {
      const isApplied = (await lastDriftCheckAt()) !== undefined
      return isApplied && JSON.stringify(await actualRecords()) === JSON.stringify(await expectedRecords())
    }).catch(() => {}),
  )
  expect(await actualRecords()).toEqual(await expectedRecords())
  // No write is in flight that would undo this: after two more drift checks the zone is the same.
  for (let times = 0; times < 2; times += 1) {
    const before = (await lastDriftCheckAt()) ?? 0
    await until('the zone has another drift check', async () => ((await lastDriftCheckAt()) ?? 0) > before)
  }
  expect(await actualRecords()).toEqual(await expectedRecords())
  const listed = await database.sql<{ name: string; type: string; ttl: number; data: string[] }[]>`
    select deleted.* from allocation_history,
      jsonb_to_recordset(deleted_records) as deleted (name text, type text, ttl int, data jsonb)`
  expect(new Set(listed.map(({ data, ...set }) => format({ ...set, values: data })))).toEqual(
    new Set((await doomedRecords()).map(format)),
  )

  const confirmed = new Map(callers.flatMap(caller => [...caller.confirmed]))
  const rows = await database.sql<{ subdomain: string; state: string; digest: string; address: string | null }[]>`
    select subdomain, state, encode(token_hash, 'hex') as digest, host(load_balancer_ip) as address from pool_allocations`
  const unanswered = new Map(callers.flatMap(caller => [...caller.unanswered]))
  const known = rows.filter(row => !unanswered.has(row.subdomain))
  expect(
    known
      .map(({ subdomain, state, digest, address }) => ({ subdomain, state, digest, ...(address && { address }) }))
      .sort(byName),
  ).toEqual(
    [...confirmed]
      .flatMap(([subdomain, current]) => {
        if (current.state === 'free') return []
        const { token, ...fields } = current
        return [{ subdomain, ...fields, digest: tokenDigest(token) }]
      })
      .sort(byName),
  )
  expect(callers.flatMap(caller => caller.unexpectedResponses)).toEqual([])
  const requests = callers.reduce((sum, caller) => sum + caller.requests, 0)
  return `${kind} ${KILLS_PER_PROVIDER} in ${(ms / 1_000).toFixed(1)} s, ${requests} requests, ${unanswered.size} without a response, quiescent after ${(quiescentMs / 1_000).toFixed(1)} s`
}

const byName = (a: { subdomain: string }, b: { subdomain: string }) => (a.subdomain < b.subdomain ? -1 : 1)

describe('random kills', () => {
  test(`${2 * KILLS_PER_PROVIDER} kills under traffic: every confirmed change is in effect, and the zone has exactly these and the foreign records`, {
    timeout: 120_000 + 10_000 * KILLS_PER_PROVIDER,
  }, async () => {
    const figures = await Promise.all([
      killAtRandom('local', startLocalHost, 1),
      killAtRandom('dynadot', startDynadotHost, 2),
    ])
    reportProof(`random kills: ${figures.join('; ')}`)
  })
})
