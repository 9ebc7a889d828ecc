import { createSocket, type Socket } from 'node:dgram'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createDomainProof,
  createTxtResolver,
  type DomainProof,
  type LookUpTxt,
  type TxtLookup,
} from '../../src/deployments/fqdn.ts'
import { createZoneTable } from '../../src/dns/providers/local/provider.ts'
import { bind, knot, type Server, startServer } from '../providers/support/rfc2136.ts'
import {
  caller,
  operator,
  removeDeployment,
  specFor,
  toBody,
  useDeployments,
  waitForApply,
  waitUntilFinished,
  withStorage,
} from '../support/deployments-fixture.ts'
import { applied } from '../support/fake-provisioner.ts'
import { startTestService } from '../support/service.ts'

const fixture = useDeployments()
const domain = 'cloud.acme.example'
const spec = specFor('x', { sovereignFQDN: domain, name: null })
const record = `_pool-challenge.${domain}`

const createProof = (lookUpTxt: LookUpTxt): DomainProof =>
  createDomainProof({ sql: fixture.sql, isRequired: true, lookUpTxt, timeoutMs: 5_000 })

const neverLookUp = async (): Promise<TxtLookup> => {
  throw new Error('no lookup is needed')
}

/** A replica that requires a proof. `texts` are the TXT records of the domain. */
const createReplica = () => {
  const texts: string[] = []
  const lookups: string[] = []
  const domainProof = createProof(async name => {
    lookups.push(name)
    return texts.length > 0 ? { kind: 'found', texts } : { kind: 'absent' }
  })
  const replica = fixture.replica({ domainProof })
  const create = (key?: string) => replica.deployments.create(toBody(spec), caller, key)
  return { replica, texts, lookups, domainProof, create }
}

const notProven = {
  kind: 'domain-not-proven',
  detail: `Prove that you control ${domain}: create the TXT record ${record} with the value from POST /api/v1/domains/challenge, then retry.`,
}

describe('a deployment of a customer domain', () => {
  test('needs the record; a rejected request changes nothing and does not use up its Idempotency-Key', async () => {
    const { texts, lookups, domainProof, create } = createReplica()
    expect(await create('one-key')).toEqual(notProven)
    expect(lookups).toEqual([record])
    expect(await fixture.sql`select from lineages`).toHaveLength(0)
    texts.push((await domainProof.createChallenge(domain, undefined)).value)
    expect(await create('one-key')).toMatchObject({ kind: 'created' })
    expect(await create('one-key')).toMatchObject({ kind: 'created' })
  })

  test('is not proven by a value of another domain, by its hash, or by an expired value', async () => {
    const { texts, domainProof, create } = createReplica()
    texts.push((await domainProof.createChallenge('other.example', undefined)).value)
    expect(await create()).toEqual(notProven)
    const { value, expiresAt } = await domainProof.createChallenge(domain, undefined)
    const rows = await fixture.sql<{ hash: Buffer }[]>`select value_hash as hash from domain_challenges`
    texts.push(...rows.flatMap(({ hash }) => [hash.toString('hex'), hash.toString('base64url')]))
    expect(await create()).toEqual(notProven)
    texts.push(value)
    await fixture.advance(7 * 86_400_000)
    expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now())
    expect(await create()).toEqual(notProven)
  })

  test('is not proven by the record that an earlier tenant left', async () => {
    const { replica, texts, domainProof, create } = createReplica()
    texts.push((await domainProof.createChallenge(domain, undefined)).value)
    replica.provisioner.result = applied()
    const first = await create()
    if (first.kind !== 'created') throw new Error(first.kind)
    await waitUntilFinished(replica, first.id)
    await replica.deployments.destroy(first.id, {}, operator)
    await waitUntilFinished(replica, first.id)
    await removeDeployment(replica, first.id)
    expect(await create()).toEqual(notProven)
    texts.push((await domainProof.createChallenge(domain, undefined)).value)
    expect(await create()).toMatchObject({ kind: 'created' })
  })

  test('is not proven by a value that another client requested under its Idempotency-Key', async () => {
    const { texts, domainProof, create } = createReplica()
    const first = await domainProof.createChallenge(domain, 'key-of-the-owner')
    expect((await domainProof.createChallenge(domain, 'key-of-the-owner')).value).toBe(first.value)
    expect((await domainProof.createChallenge(domain, 'another-key')).value).not.toBe(first.value)
    texts.push(first.value)
    expect(await create()).toEqual(notProven)
    expect(await create('another-key')).toEqual(notProven)
    expect(await create('key-of-the-owner')).toMatchObject({ kind: 'created' })
  })

  test('of 50 concurrent requests with one record, one creates; under one key, all get its response', async () => {
    const { texts, domainProof, create } = createReplica()
    texts.push((await domainProof.createChallenge(domain, 'one-key')).value)
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => create('one-key')))
    expect(new Set(outcomes.map(outcome => JSON.stringify(outcome))).size).toBe(1)
    expect(outcomes[0]).toMatchObject({ kind: 'created' })
    expect(await fixture.sql`select from deployments`).toHaveLength(1)
  })

  test('can be created with a value that another replica returned', async () => {
    const { texts, create } = createReplica()
    texts.push((await createReplica().domainProof.createChallenge(domain, undefined)).value)
    expect(await create()).toMatchObject({ kind: 'created' })
  })

  test('whose record cannot be looked up: the reason, not a rejection of the domain', async () => {
    const domainProof = createProof(async () => ({ kind: 'failed', reason: 'ESERVFAIL' }))
    expect(await fixture.replica({ domainProof }).deployments.create(toBody(spec), caller, undefined)).toEqual({
      kind: 'dns-unavailable',
      detail: `The TXT record ${record} could not be looked up (ESERVFAIL); check the name servers of the domain, or retry later.`,
    })
  })

  test('whose name leaves no room for the record is rejected without a lookup', async () => {
    const { replica, lookups } = createReplica()
    const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(47)}.example`
    const body = toBody(specFor('x', { sovereignFQDN: long, name: null }))
    expect(long).toHaveLength(238)
    expect(await replica.deployments.create(body, caller, undefined)).toMatchObject({ kind: 'domain-not-proven' })
    expect(lookups).toEqual([])
  })

  test('can be applied again with the record of its creation, until nothing keeps the domain and the value has expired', async () => {
    const { replica, texts, domainProof, create } = createReplica()
    texts.push((await domainProof.createChallenge(domain, undefined)).value)
    replica.provisioner.result = { kind: 'failed', reason: 'no' }
    const outcome = await create()
    if (outcome.kind !== 'created') throw new Error(outcome.kind)
    const { id } = outcome
    const apply = async () => {
      const started = await replica.deployments.apply(id, {}, operator)
      if (started.kind === 'started') await waitUntilFinished(replica, id)
      return started
    }
    await waitUntilFinished(replica, id)
    expect(await apply()).toMatchObject({ kind: 'started' })
    await fixture.advance(7 * 86_400_000)
    expect(await apply()).toEqual(notProven)
    texts.push((await domainProof.createChallenge(domain, undefined)).value)
    replica.provisioner.result = applied()
    expect(await apply()).toMatchObject({ kind: 'started' })
    texts.length = 0
    expect(await apply(), 'the infrastructure keeps the domain').toMatchObject({ kind: 'started' })
  })
})

describe('the check of a domain', () => {
  test('says whether the record proves it, for the Idempotency-Key of the challenge', async () => {
    const { replica, texts, domainProof } = createReplica()
    const check = async (key?: string) => (await replica.deployments.checkDomain(domain, key)).proof
    expect(await check('one-key')).toBe('missing')
    texts.push((await domainProof.createChallenge(domain, 'one-key')).value)
    expect([await check('one-key'), await check('another-key'), await check()]).toEqual([
      'proven',
      'missing',
      'missing',
    ])
    expect(await fixture.sql`select from lineages`).toHaveLength(0)
  })

  test('says that a deployment has it, and what an earlier one left', async () => {
    const { replica, texts, domainProof, create } = createReplica()
    const check = () => replica.deployments.checkDomain(domain, undefined)
    expect(await check()).toMatchObject({ available: true })
    texts.push((await domainProof.createChallenge(domain, undefined)).value)
    replica.provisioner.result = applied()
    const outcome = await create()
    if (outcome.kind !== 'created') throw new Error(outcome.kind)
    await waitUntilFinished(replica, outcome.id)
    expect(await check()).toMatchObject({ available: false, reason: 'fqdn-conflict' })
    replica.provisioner.destroyResult = { kind: 'failed', reason: 'no' }
    await replica.deployments.destroy(outcome.id, {}, operator)
    await waitUntilFinished(replica, outcome.id)
    expect(await check()).toMatchObject({ available: false, reason: 'fqdn-remains', proof: 'missing' })
  })

  test('whose record cannot be looked up, or is not needed', async () => {
    const failing = createProof(async () => ({ kind: 'failed', reason: 'ESERVFAIL' }))
    const off = createDomainProof({ sql: fixture.sql, isRequired: false, lookUpTxt: neverLookUp, timeoutMs: 5_000 })
    const check = (domainProof: DomainProof) => fixture.replica({ domainProof }).deployments.checkDomain(domain, 'key')
    expect(await check(failing)).toMatchObject({ proof: 'unknown', proofDetail: expect.stringContaining('ESERVFAIL') })
    expect(await check(off)).toEqual({ domain, available: true, proof: 'not-required' })
  })
})

test('a name of a pool needs no record', async () => {
  const { replica, lookups } = createReplica()
  expect(await replica.deployments.create(toBody(withStorage('acme')), caller, undefined)).toMatchObject({
    kind: 'created',
  })
  await waitForApply(replica)
  expect(lookups).toEqual([])
})

test('PDM_BYO_PROOF=off: no record is needed', async () => {
  const options = { sql: fixture.sql, isRequired: false, lookUpTxt: neverLookUp, timeoutMs: 5_000 }
  const domainProof = createDomainProof(options)
  const outcome = await fixture.replica({ domainProof }).deployments.create(toBody(spec), caller, undefined)
  expect(outcome).toMatchObject({ kind: 'created' })
})

describe('a challenge', () => {
  test('is stored as a hash only, and an expired one is deleted by later ones', async () => {
    const { domainProof } = createReplica()
    const { value } = await domainProof.createChallenge(domain, 'a-secret-key')
    const [row] = await fixture.sql`select *, domain_challenges::text as text from domain_challenges`
    expect(row?.text).not.toContain(value)
    expect(row?.text).not.toContain('a-secret-key')
    await fixture.advance(7 * 86_400_000)
    await domainProof.createChallenge(domain, undefined)
    expect(await fixture.sql`select from domain_challenges`).toHaveLength(1)
  })
})

describe.each([bind, knot])('with $name', kind => {
  if (shouldSkip(kind.missingPrograms)) return test.skip(kind.missingPrograms ?? '')
  let server: Server
  let lookUp: LookUpTxt
  beforeAll(async () => {
    server = await startServer(kind)
    lookUp = createTxtResolver({ servers: [`127.0.0.1:${server.port}`], timeoutMs: 30_000 })
  })
  afterAll(() => server[Symbol.asyncDispose]())
  const put = (name: string, type: string, ...values: string[]) =>
    server.put({ name: `${name}.${server.zone}`, type, ttl: 60, values })
  const look = (name: string) => lookUp(`${name}.${server.zone}`)

  test('a name that does not exist, and one without TXT records, are absent', async () => {
    await put('address', 'A', '192.0.2.1')
    expect([await look('nothing'), await look('address')]).toEqual([{ kind: 'absent' }, { kind: 'absent' }])
  })

  test('several records, one of several character strings', async () => {
    await put('several', 'TXT', '"v=spf1 -all"', `"${'a'.repeat(255)}" "${'b'.repeat(255)}" "c"`, '"plain"')
    const found = await look('several')
    if (found.kind !== 'found') throw new Error(found.kind)
    expect(found.texts.toSorted()).toEqual([`${'a'.repeat(255)}${'b'.repeat(255)}c`, 'plain', 'v=spf1 -all'])
  })

  test('more records than fit in a datagram', async () => {
    const texts = Array.from({ length: 90 }, (_, i) => `${String(i).padStart(2, '0')}${'x'.repeat(150)}`)
    await put('many', 'TXT', ...texts.map(text => `"${text}"`))
    const found = await look('many')
    expect(found.kind === 'found' && found.texts.toSorted()).toEqual(texts)
  })

  test('an alias is followed, and an alias to nothing is absent', async () => {
    await put('target', 'TXT', '"of the target"')
    await put('alias', 'CNAME', `target.${server.zone}.`)
    await put('dangling', 'CNAME', `gone.${server.zone}.`)
    expect(await look('alias')).toEqual({ kind: 'found', texts: ['of the target'] })
    expect(await look('dangling')).toEqual({ kind: 'absent' })
  })

  test('another zone is refused, which says nothing about the name', async () => {
    expect(await lookUp('name.elsewhere.example')).toEqual({ kind: 'failed', reason: 'EREFUSED' })
  })

  test('a domain is proven by a record among others, with the value in two character strings', async () => {
    const name = `cloud.${server.zone}`
    const domainProof = createProof(lookUp)
    const replica = fixture.replica({ domainProof })
    const body = toBody(specFor('x', { sovereignFQDN: name, name: null }))
    expect(await replica.deployments.create(body, caller, undefined)).toMatchObject({ kind: 'domain-not-proven' })
    const { value } = await domainProof.createChallenge(name, undefined)
    await put('_pool-challenge.cloud', 'TXT', '"other"', `"${value.slice(0, 20)}" "${value.slice(20)}"`)
    expect(await replica.deployments.create(body, caller, undefined)).toMatchObject({ kind: 'created' })
  })
})

test('the local DNS server has the record of a name in one of its zones', async () => {
  const { api, database } = await startTestService({ DNSPROVIDER_MANAGED_DOMAINS: 'example' })
  const lookUp = createTxtResolver({ servers: [`127.0.0.1:${api.dnsPort}`], timeoutMs: 5_000 })
  expect(await lookUp(record)).toEqual({ kind: 'absent' })
  const table = createZoneTable(database.sql)
  const set = { name: record, type: 'TXT', ttl: 60, values: ['"a" "b"', '"c"'] }
  const { serial } = await table.read('example', [])
  expect(await table.apply('example', [{ kind: 'upsert', set }], serial)).not.toBeNull()
  const found = await lookUp(record)
  expect(found.kind === 'found' && found.texts.toSorted()).toEqual(['ab', 'c'])
  expect(await lookUp('name.elsewhere.test')).toMatchObject({ kind: 'failed' })
})

describe('a resolver that fails', () => {
  /** Answers every query with this response code (RFC 1035 section 4.1.1), or not at all. */
  const startFailingServer = async (code: number | null): Promise<Socket> => {
    const socket = createSocket('udp4')
    socket.on('message', (query, { port, address }) => {
      if (code === null) return
      const answer = Buffer.from(query)
      answer.writeUInt16BE(0x8180 | code, 2)
      socket.send(answer, port, address)
    })
    await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
    return socket
  }

  test.each([
    ['SERVFAIL', 2, 'ESERVFAIL', 30_000],
    ['NOTIMP', 4, 'ENOTIMP', 30_000],
    ['REFUSED', 5, 'EREFUSED', 30_000],
    ['no answer', null, 'ETIMEOUT', 400],
  ] as const)('%s', async (_, code, reason, timeoutMs) => {
    const socket = await startFailingServer(code)
    const servers = [`127.0.0.1:${socket.address().port}`]
    const started = performance.now()
    expect(await createTxtResolver({ servers, timeoutMs })(record)).toEqual({ kind: 'failed', reason })
    expect(performance.now() - started).toBeLessThan(15_000)
    socket.close()
  })
})
