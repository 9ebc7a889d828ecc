import { randomUUID } from 'node:crypto'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { readSchema, toExportVersion } from '../../src/database/schema.ts'
import { hashToken } from '../../src/lib/token.ts'
import { createPools } from '../../src/naming/naming.ts'
import { exportLines } from '../../src/transfer/export.ts'
import { importInstallation } from '../../src/transfer/import.ts'
import { createTestDatabase, truncateAllocations, useTestDatabase } from '../support/database.ts'
import { lockRow, untilSessionsWait } from '../support/locks.ts'
import {
  cleanUp,
  createTenants,
  inCluster,
  operator,
  present,
  put,
  remove,
  type Tenants,
  toChallenge,
} from '../support/tenant-fixture.ts'

const database = await useTestDatabase({ connections: 30 })
const { sql } = database
const poolDomain = 'pool.test'
const ACME = { poolDomain, subdomain: 'acme' }
const DAY_MS = 24 * 3_600_000
const OWN = ['*.acme.pool.test A 192.0.2.1', 'acme.pool.test A 192.0.2.1']
const FORBIDDEN = { kind: 'unauthorized' }

let tenants: Tenants
let reservationToken: string
beforeAll(() => {
  tenants = createTenants(sql)
})
beforeEach(async () => {
  await truncateAllocations(sql)
  tenants = createTenants(sql)
  reservationToken = await tenants.activate('acme')
})

const events = async (): Promise<string[]> => {
  const rows = await sql<{ text: string }[]>`
    select concat_ws(' ', actor, event, detail) as text from allocation_history
    where event like 'token-%' or event like 'records-%' order by id`
  return rows.map(({ text }) => text)
}

const countRows = async () => {
  const [row] = await sql<{ tokens: number; records: number }[]>`
    select (select count(*) from record_tokens) as tokens, (select count(*) from tenant_records) as records`
  return row
}

describe('tokens', () => {
  test('the holder, an operator and a deployment mint tokens; nobody else does', async () => {
    const minted = await tenants.tryMint('acme', reservationToken, { scope: 'acme', owner: 'certs', expiresInDays: 2 })
    expect(minted).toMatchObject({
      kind: 'minted',
      minted: {
        scope: 'acme',
        owner: 'certs',
        fqdn: 'acme.pool.test',
        token: expect.stringMatching(/^pdr_[A-Za-z0-9_-]{43}$/),
      },
    })
    expect(await tenants.tryMint('acme', null)).toMatchObject({ kind: 'minted' })
    expect(await tenants.tryMint('acme', randomUUID())).toEqual({ kind: 'token-mismatch' })
    expect(await tenants.tryMint('free', null)).toEqual({ kind: 'not-found' })
    const mint = (fields: object, caller = inCluster) =>
      tenants.records.mintToken({ ...ACME, scope: 'acme', owner: 'd', ...fields }, caller, undefined)
    expect(await mint({})).toEqual({ kind: 'token-mismatch' })
    expect(await mint({ poolDomain: 'elsewhere.test' })).toMatchObject({ kind: 'unsupported-pool' })
    const deploymentTokenHash = hashToken(randomUUID())
    expect(await mint({ deploymentTokenHash })).toEqual({ kind: 'token-mismatch' })
    const lineageId = randomUUID()
    await sql`insert into lineages (id, sovereign_fqdn, pool_domain, subdomain, infrastructure_changed_at, created_at)
      values (${lineageId}, 'acme.pool.test', ${poolDomain}, 'acme', now(), now())`
    await sql`insert into deployments (id, lineage_id, status, request, sovereign_fqdn, reservation_token_hash, token_hash, started_at, run_expires_at)
      values (${randomUUID()}, ${lineageId}, 'pending', '{"objectStorageAccessKey":"","objectStorageSecretKey":""}', 'acme.pool.test', ${hashToken(reservationToken)}, ${deploymentTokenHash}, now(), now())`
    expect(await mint({ deploymentTokenHash })).toMatchObject({ kind: 'minted' })
    await sql`delete from deployments`
    expect(await countRows()).toEqual({ tokens: 3, records: 1 })
    expect((await events())[0]).toMatch(/^in-cluster token-minted scope acme, owner certs, id [0-9a-f-]{36}$/)
  })

  test('a reserved name has tokens, which stay valid after the commit and can set nothing before it', async () => {
    const token = await tenants.reserve('beta')
    const minted = await tenants.tryMint('beta', token)
    const recordToken = minted.kind === 'minted' ? minted.minted.token : ''
    expect(await tenants.change(recordToken, present('beta.pool.test', 'a'))).toMatchObject({
      kind: 'refused',
      refusals: [{ kind: 'not-active' }],
    })
    await tenants.commit('beta', token)
    expect(await tenants.change(recordToken, present('beta.pool.test', 'a'))).toMatchObject({ kind: 'changed' })
  })

  test('a repetition under the key returns the same token as long as it is valid, and no row contains it', async () => {
    const mint = async (key: string) => {
      const outcome = await tenants.tryMint('acme', reservationToken, { key })
      return outcome.kind === 'minted' ? outcome.minted : outcome
    }
    const key = randomUUID()
    const first = await mint(key)
    expect(await mint(key)).toEqual(first)
    expect(await countRows()).toMatchObject({ tokens: 1 })
    expect(await tenants.tryMint('acme', reservationToken, { key, owner: 'other' })).toEqual({
      kind: 'idempotency-key-reused',
    })
    const token = 'token' in first ? first.token : ''
    const id = 'id' in first ? first.id : ''
    expect(await tenants.records.deleteToken({ ...ACME, id, withRecords: false }, operator)).toEqual({
      kind: 'deleted',
    })
    expect(await mint(key)).not.toMatchObject({ token })
    const rows = await sql<{ text: string }[]>`
      select to_jsonb(t)::text as text from record_tokens t union all select to_jsonb(t)::text from idempotency_keys t
      union all select to_jsonb(t)::text from allocation_history t`
    for (const { text } of rows) expect(text).not.toContain(token.slice(4))
  })

  test('ten tokens and ten owners, also if they are minted at the same time', async () => {
    const held = await lockRow(sql, ACME)
    const minting = Array.from({ length: 12 }, (_, i) => createTenants(sql).tryMint('acme', null, { owner: `o${i}` }))
    await untilSessionsWait(sql, 8)
    await held.release()
    const kinds = (await Promise.all(minting)).map(({ kind }) => kind).sort()
    expect(kinds).toEqual([...Array(10).fill('minted'), 'too-many-tokens', 'too-many-tokens'])
    const listed = await tenants.records.listTokens(ACME)
    const tokens = listed.kind === 'listed' ? listed.tokens : []
    expect(tokens).toHaveLength(10)
    // The records of an owner count after its token is deleted.
    await sql`update tenant_records set records = ${sql.json({ sets: [{ owner: 'kept' }], challenges: [] })}`
    for (const { id } of tokens.slice(0, 1))
      await tenants.records.deleteToken({ ...ACME, id, withRecords: false }, operator)
    expect(await tenants.tryMint('acme', null, { owner: 'another' })).toEqual({ kind: 'too-many-tokens' })
    expect(await tenants.tryMint('acme', null, { owner: 'kept' })).toMatchObject({ kind: 'minted' })
  })

  test('an expired token is invalid, is not listed and makes room', async () => {
    const token = await tenants.mint('acme', { expiresInDays: 1 })
    expect(await tenants.read(token)).toMatchObject({ kind: 'read', owner: 'default', state: 'active' })
    await database.advance(DAY_MS)
    expect(await tenants.read(token)).toEqual(FORBIDDEN)
    expect(await tenants.change(token, present('acme.pool.test', 'a'))).toEqual(FORBIDDEN)
    expect(await tenants.records.listTokens(ACME)).toEqual({ kind: 'listed', tokens: [] })
  })

  test('deletion: the records stay with their owner, unless they are to be deleted too', async () => {
    for (const withRecords of [false, true]) {
      const token = await tenants.mint('acme', { owner: 'shop' })
      await tenants.change(token, put('shop.acme.pool.test', 'A', '192.0.2.9'), present('acme.pool.test', 'a'))
      const listed = await tenants.records.listTokens(ACME)
      const id = (listed.kind === 'listed' && listed.tokens[0]?.id) || ''
      expect(listed).toMatchObject({ tokens: [{ lastUsedAt: new Date().toISOString().slice(0, 10) }] })
      expect(await tenants.records.deleteToken({ ...ACME, id, withRecords }, inCluster)).toEqual({
        kind: 'token-mismatch',
      })
      const proof = { tokenHash: hashToken(reservationToken) }
      expect(await tenants.records.deleteToken({ ...ACME, ...proof, id, withRecords }, inCluster)).toEqual({
        kind: 'deleted',
      })
      expect(await tenants.records.deleteToken({ ...ACME, id, withRecords }, operator)).toEqual({ kind: 'not-found' })
      expect(await tenants.read(token)).toEqual(FORBIDDEN)
      expect(await tenants.records.listRecords(ACME)).toHaveLength(withRecords ? 0 : 2)
    }
    expect(await tenants.desired('acme')).toEqual(OWN)
  })

  test.each([
    ['off', 'not-supported', FORBIDDEN],
    ['acme', 'not-supported', { kind: 'read', scope: 'acme' }],
  ] as const)(
    'the highest scope is %s: no tokens above it, and those that exist have no more',
    async (maxScope, kind, read) => {
      const token = await tenants.mint('acme')
      const limited = createTenants(sql, { options: { maxScope } })
      expect(await limited.tryMint('acme', null)).toMatchObject({ kind })
      expect(await limited.read(token)).toMatchObject(read)
      if (maxScope === 'off') return
      expect(await limited.change(token, put('shop.acme.pool.test', 'A', '192.0.2.9'))).toMatchObject({
        refusals: [{ kind: 'outside-scope' }],
      })
    },
  )
})

describe('records', () => {
  test('what a tenant sets joins the desired records, and leaves them with a deletion', async () => {
    const token = await tenants.mint('acme')
    expect(
      await tenants.change(token, put('Shop.acme.pool.test.', 'a', '192.0.2.9'), present('deep.acme.pool.test', 'a')),
    ).toEqual({
      kind: 'changed',
      refusals: [],
      dns: { status: 'pending' },
    })
    const withDeep = ['*.deep.acme.pool.test A 192.0.2.1', 'deep.acme.pool.test A 192.0.2.1']
    expect(await tenants.desired('acme')).toEqual(
      [
        ...OWN,
        ...withDeep,
        'shop.acme.pool.test A 192.0.2.9',
        `_acme-challenge.deep.acme.pool.test TXT "${toChallenge('a')}"`,
      ].sort(),
    )
    expect(await tenants.read(token)).toMatchObject({
      sets: [
        { name: '_acme-challenge.deep.acme.pool.test', type: 'TXT', ttl: 1, isChallenge: true },
        { name: 'shop.acme.pool.test', type: 'A', ttl: 60, values: ['192.0.2.9'], owner: 'default', isPublished: true },
      ],
    })
    await tenants.change(token, remove('shop.acme.pool.test', 'A'), cleanUp('deep.acme.pool.test', 'a'))
    expect(await tenants.desired('acme')).toEqual(OWN)
    expect((await events()).slice(1)).toEqual([
      'tenant records-changed _acme-challenge.deep.acme.pool.test TXT set, shop.acme.pool.test A set',
      'tenant records-changed _acme-challenge.deep.acme.pool.test TXT deleted, shop.acme.pool.test A deleted',
    ])
  })

  test('a repetition changes nothing but the time of a challenge', async () => {
    const token = await tenants.mint('acme')
    const changes = [put('shop.acme.pool.test', 'A', '192.0.2.9'), present('acme.pool.test', 'a')]
    await tenants.change(token, ...changes)
    const version = async () => (await sql`select version from dns_names where subdomain = 'acme'`)[0]?.version
    const before = await version()
    expect(await tenants.change(token, ...changes)).toMatchObject({ kind: 'changed', refusals: [] })
    expect(
      await tenants.change(token, remove('absent.acme.pool.test', 'A'), cleanUp('acme.pool.test', 'absent')),
    ).toMatchObject({
      kind: 'changed',
    })
    expect(await version()).toBe(before)
    expect(await events()).toHaveLength(2)
  })

  test('one refusal refuses everything, or only its own change', async () => {
    const token = await tenants.mint('acme')
    const changes = [put('shop.acme.pool.test', 'A', '192.0.2.9'), put('acme.pool.test', 'A', '192.0.2.9')]
    expect(await tenants.change(token, ...changes)).toMatchObject({
      kind: 'refused',
      refusals: [{ kind: 'template-record' }],
    })
    expect(await tenants.desired('acme')).toEqual(OWN)
    expect(await tenants.changeEach(token, ...changes)).toMatchObject({
      kind: 'changed',
      refusals: [{ change: changes[1] }],
    })
    expect(await tenants.desired('acme')).toHaveLength(3)
  })

  test('a review refuses what a change would, with the records of other owners and without its own', async () => {
    const [a, b] = [await tenants.mint('acme', { owner: 'a' }), await tenants.mint('acme', { owner: 'b' })]
    await tenants.change(a, put('shop.acme.pool.test', 'A', '192.0.2.9'))
    const alias = put('SHOP.acme.pool.test', 'CNAME', 'Other.example.')
    expect(await tenants.review(a, alias)).toEqual({
      kind: 'reviewed',
      accepted: [{ kind: 'put', name: 'shop.acme.pool.test', type: 'CNAME', ttl: 60, values: ['other.example'] }],
      refusals: [],
    })
    expect(await tenants.review(b, alias)).toMatchObject({ accepted: [], refusals: [{ kind: 'record-conflict' }] })
    expect(await tenants.desired('acme')).toHaveLength(3)
  })

  test('sixty writing requests a minute and name', async () => {
    const fixed = createTenants(sql, { now: () => 0 })
    const token = await fixed.mint('acme')
    for (let i = 0; i < 60; i += 1) {
      expect(await fixed.change(token, remove('absent.acme.pool.test', 'A'))).toMatchObject({ kind: 'changed' })
    }
    expect(await fixed.change(token, remove('absent.acme.pool.test', 'A'))).toEqual({
      kind: 'rate-limited',
      retryAfterSeconds: 1,
    })
    expect(await fixed.read(token)).toMatchObject({ kind: 'read' })
  })

  test('concurrent writes of several owners: each takes effect', async () => {
    const owners = Array.from({ length: 5 }, (_, i) => `o${i}`)
    const tokens = await Promise.all(owners.map(owner => tenants.mint('acme', { owner })))
    const others = owners.map(() => createTenants(sql))
    await Promise.all(
      tokens.flatMap((token, i) =>
        [1, 2, 3].map(n => others[i]?.change(token, put(`r${n}.o${i}.acme.pool.test`, 'TXT', `${n}`))),
      ),
    )
    expect(await tenants.records.listRecords(ACME)).toHaveLength(15)
    expect((await tenants.desired('acme')).filter(text => text.includes('TXT'))).toHaveLength(15)
  })
})

describe('the end of a reservation', () => {
  const setRecord = async () => {
    const token = await tenants.mint('acme')
    await tenants.change(token, put('shop.acme.pool.test', 'A', '192.0.2.9'))
    expect(await tenants.desired('acme')).toHaveLength(3)
    return token
  }

  test('release: no token, no record; the next holder has neither', async () => {
    const token = await setRecord()
    await tenants.release('acme')
    expect(await countRows()).toEqual({ tokens: 0, records: 0 })
    expect(await tenants.desired('acme')).toEqual([])
    const next = await tenants.activate('acme')
    expect(await tenants.read(token)).toEqual(FORBIDDEN)
    expect(await tenants.change(token, put('shop.acme.pool.test', 'A', '192.0.2.9'))).toEqual(FORBIDDEN)
    expect(await tenants.desired('acme')).toEqual(OWN)
    expect(await tenants.tryMint('acme', next)).toMatchObject({ kind: 'minted' })
    expect(await tenants.read(token)).toEqual(FORBIDDEN)
  })

  test('cool-off: the former holder takes the name back without its tokens and records', async () => {
    const cooling = createTenants(sql, { coolOffMs: DAY_MS })
    const token = await setRecord()
    await cooling.release('acme')
    expect(await countRows()).toEqual({ tokens: 0, records: 0 })
    const again = await cooling.reserve('acme', reservationToken)
    expect(await cooling.read(token)).toEqual(FORBIDDEN)
    await cooling.commit('acme', again)
    expect(await cooling.desired('acme')).toEqual(OWN)
    expect(await cooling.read(token)).toEqual(FORBIDDEN)
  })

  test('expiry: a token of an expired reservation is invalid, and goes with it', async () => {
    const beta = await tenants.reserve('beta')
    const minted = await tenants.tryMint('beta', beta)
    const token = minted.kind === 'minted' ? minted.minted.token : ''
    await database.advance(600_000)
    expect(await tenants.read(token)).toEqual(FORBIDDEN)
    expect(await tenants.tryMint('beta', beta)).toEqual({ kind: 'not-found' })
    await tenants.reserve('beta')
    expect(await tenants.read(token)).toEqual(FORBIDDEN)
    expect(await countRows()).toEqual({ tokens: 0, records: 0 })
  })

  test('every other statement that ends a reservation ends the tokens too', async () => {
    for (const end of [
      sql`delete from pool_allocations where subdomain = 'acme'`,
      sql`update pool_allocations set token_hash = sha256('other')`,
      sql`update pool_allocations set state = 'released', cool_off_until = now()`,
    ]) {
      await truncateAllocations(sql)
      await tenants.activate('acme')
      await setRecord()
      await end
      expect(await countRows()).toEqual({ tokens: 0, records: 0 })
    }
  })

  test('a write that waits for a release has no effect', async () => {
    const token = await tenants.mint('acme')
    const held = await lockRow(sql, ACME)
    const released = tenants.release('acme')
    await untilSessionsWait(sql, 1)
    const written = createTenants(sql).change(token, put('shop.acme.pool.test', 'A', '192.0.2.9'))
    await untilSessionsWait(sql, 2)
    await held.release()
    expect(await released).toMatchObject({ kind: 'released' })
    expect(await written).toEqual(FORBIDDEN)
    expect(await tenants.desired('acme')).toEqual([])
    expect(await countRows()).toEqual({ tokens: 0, records: 0 })
  })
})

test('a name moves to another database with its records and tokens, and no token is in the export', async () => {
  const token = await tenants.mint('acme')
  await tenants.change(token, put('shop.acme.pool.test', 'A', '192.0.2.9'), present('acme.pool.test', 'a'))
  const schemaVersion = toExportVersion(await readSchema())
  const idleTimeoutMs = 60_000
  const toOptions = (url: string) => ({
    connect: () => createDatabaseClient(url, { maxConnections: 1, applicationName: 'transfer' }),
    ...{ schemaVersion, idleTimeoutMs, pools: () => createPools(['pool.test']) },
  })
  const lines: string[] = []
  for await (const line of exportLines(toOptions(database.url))) lines.push(line)
  expect(lines.join('')).not.toContain(token.slice(4))
  const other = await createTestDatabase({ connections: 2 })
  onTestFinished(() => other.drop())
  const chunks = async function* () {
    yield Buffer.from(lines.join(''))
  }
  expect(await importInstallation(toOptions(other.url), chunks(), { isDryRun: false })).toMatchObject({
    kind: 'imported',
    rows: { record_tokens: 1, tenant_records: 1 },
  })
  const moved = createTenants(other.sql)
  expect(await moved.read(token)).toEqual(await tenants.read(token))
  expect(await moved.change(token, remove('shop.acme.pool.test', 'A'))).toMatchObject({ kind: 'changed' })
  await moved.release('acme')
  expect(await other.sql`select from record_tokens`).toHaveLength(0)
})

describe('challenges', () => {
  test('the newest ten of all owners', async () => {
    const [a, b] = [
      await tenants.mint('acme', { owner: 'a', scope: 'acme' }),
      await tenants.mint('acme', { owner: 'b' }),
    ]
    for (let i = 0; i < 11; i += 1) await tenants.change(i % 2 ? a : b, present('acme.pool.test', `v${i}`))
    const [text = ''] = (await tenants.desired('acme')).filter(line => line.includes('TXT'))
    const values = Array.from({ length: 10 }, (_, i) => `"${toChallenge(`v${i + 1}`)}"`)
    expect(text.split(' ').slice(2)).toEqual(values.sort())
  })

  test('a value goes seven days after it was set, by the clock of the database', async () => {
    const token = await tenants.mint('acme', { scope: 'acme' })
    await tenants.change(token, present('shop.acme.pool.test', 'old'))
    await database.advance(4 * DAY_MS)
    await tenants.change(token, present('acme.pool.test', 'new'), present('shop.acme.pool.test', 'new'))
    const settle = () => tenants.records.settleDue(new AbortController().signal)
    await settle()
    expect(await tenants.records.listRecords(ACME)).toMatchObject([
      { values: { length: 1 } },
      { values: { length: 2 } },
    ])
    await database.advance(3 * DAY_MS)
    await settle()
    expect(await tenants.records.listRecords(ACME)).toMatchObject([
      { values: { length: 1 } },
      { values: { length: 1 } },
    ])
    await tenants.change(token, present('acme.pool.test', 'new'))
    await database.advance(4 * DAY_MS)
    await settle()
    expect(await tenants.desired('acme')).toEqual(
      [...OWN, `_acme-challenge.acme.pool.test TXT "${toChallenge('new')}"`].sort(),
    )
    await database.advance(3 * DAY_MS)
    await settle()
    await settle()
    expect(await tenants.desired('acme')).toEqual(OWN)
    expect((await events()).at(-1)).toBe('sweeper records-changed _acme-challenge.acme.pool.test TXT deleted')
  })
})

describe('an update of the target', () => {
  test('the records of the tenant stay with other addresses, and go with a delegation', async () => {
    const token = await tenants.mint('acme')
    await tenants.change(token, put('a.shop.acme.pool.test', 'TXT', 't'))
    expect(await tenants.update('acme', { loadBalancerIP: '192.0.2.2' })).toMatchObject({ kind: 'updated' })
    expect(await tenants.desired('acme')).toEqual([
      '*.acme.pool.test A 192.0.2.2',
      '*.shop.acme.pool.test A 192.0.2.2',
      'a.shop.acme.pool.test TXT "t"',
      'acme.pool.test A 192.0.2.2',
      'shop.acme.pool.test A 192.0.2.2',
    ])
    expect(await tenants.update('acme', { loadBalancerHostname: 'lb.example' })).toMatchObject({ kind: 'updated' })
    expect((await tenants.desired('acme')).filter(text => text.includes('TXT ""'))).toEqual([
      '_acme-challenge.acme.pool.test TXT ""',
      '_acme-challenge.shop.acme.pool.test TXT ""',
    ])
    const nameservers = ['ns1.example', 'ns2.example']
    expect(await tenants.update('acme', { nameservers })).toMatchObject({ kind: 'updated' })
    expect(await tenants.desired('acme')).toEqual(['acme.pool.test NS ns1.example. ns2.example.'])
    expect(await tenants.records.listRecords(ACME)).toEqual([])
    expect(await tenants.change(token, present('acme.pool.test', 'a'))).toMatchObject({
      refusals: [{ kind: 'delegated' }],
    })
    await tenants.update('acme', { loadBalancerIP: '192.0.2.1' })
    expect(await tenants.change(token, present('acme.pool.test', 'a'))).toMatchObject({ kind: 'changed' })
  })

  test('a host name is rejected while the tenant has records at a name of the template', async () => {
    const token = await tenants.mint('acme')
    await tenants.change(token, put('acme.pool.test', 'MX', '10 mx.example'))
    const change = { loadBalancerHostname: 'lb.example' }
    expect(await tenants.update('acme', change)).toMatchObject({ kind: 'record-conflict' })
    expect(await tenants.allocations.findObstacle('update', { ...ACME, change }, operator)).toMatchObject({
      kind: 'record-conflict',
    })
    await tenants.change(token, remove('acme.pool.test', 'MX'))
    expect(await tenants.update('acme', change)).toMatchObject({ kind: 'updated' })
    expect(await tenants.change(token, put('acme.pool.test', 'MX', '10 mx.example'))).toMatchObject({
      refusals: [{ kind: 'record-conflict' }],
    })
  })

  test('an update and a write at the same time: both take effect', async () => {
    const token = await tenants.mint('acme')
    for (let i = 1; i <= 20; i += 1) {
      await Promise.all([
        tenants.update('acme', { loadBalancerIP: `192.0.2.${i}` }),
        createTenants(sql).change(token, put(`a.r${i % 3}.acme.pool.test`, 'TXT', `${i}`)),
      ])
      const desired = await tenants.desired('acme')
      expect(desired).toContain(`acme.pool.test A 192.0.2.${i}`)
      expect(desired).toContain(`r${i % 3}.acme.pool.test A 192.0.2.${i}`)
      expect(desired).toContain(`a.r${i % 3}.acme.pool.test TXT "${i}"`)
    }
  })

  test('a build that does not know tenants derives without their records, and the next run of the job with them', async () => {
    const token = await tenants.mint('acme')
    await tenants.change(token, put('shop.acme.pool.test', 'A', '192.0.2.9'))
    await sql`update pool_allocations set load_balancer_ip = '192.0.2.2' where subdomain = 'acme'`
    await sql`update dns_names set desired = '[]' where subdomain = 'acme'`
    await tenants.records.settleDue(new AbortController().signal)
    expect(await tenants.desired('acme')).toEqual([
      '*.acme.pool.test A 192.0.2.2',
      'acme.pool.test A 192.0.2.2',
      'shop.acme.pool.test A 192.0.2.9',
    ])
    expect(await sql`select from tenant_records where due_at is not null`).toHaveLength(0)
  })
})
