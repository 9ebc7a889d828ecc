import { execFile, spawnSync } from 'node:child_process'
import { Resolver } from 'node:dns/promises'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { missingDig, missingPowerdns, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { isProof, proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { startApi } from '@pool/test-kit/services.ts'
import { parseShellBlocks } from '@pool/test-kit/shell-blocks.ts'
import { describe, expect, test } from 'vitest'
import { createCliFolder, ENTRY } from './support/cli.ts'

const page = readFileSync(fileURLToPath(new URL('../../../docs/operate/migrate-from-pdm.md', import.meta.url)), 'utf8')
const [, PREVIEW, IMPORT, ADOPT, SWITCH, LIST_LOST, CARRY_OVER, REMOVE_ZONES, FALL_BACK] = parseShellBlocks(page).map(
  ({ code }) => code,
)
const missingTool = ['curl', 'jq'].some(tool => spawnSync(tool, ['--version']).error)
  ? 'curl or jq is not installed, the migration is not tested: apt-get install curl jq'
  : undefined

const token = 'operator-token-of-the-migration'
const ASK_INTERVAL_MS = 20
const MAX_OUTPUT = 64 * 1_024 * 1_024
const POOL = 'pool.test'
const NAMESERVERS = ['ns1.pool.test', 'ns2.pool.test']
const path = `/api/v1/pool/${POOL}`
const reservedToken = '3F0c5b6e-0d1a-4a35-9e5c-7a2b8f1c0d11'
const more = Array.from({ length: proofSize(997, 0) }, (_, index) => `t${String(index).padStart(4, '0')}`)
const active = ['acme', 'globex', 'initech', ...more]
const toAddress = (index: number) => `203.0.${113 + Math.floor(index / 200)}.${(index % 200) + 10}`

/** The two forms of pool-domain-manager: the names below a tenant's name that have an A record. */
const forms = {
  records: ['*', 'console', 'gitea', 'harbor', 'admin', 'api'],
  zones: ['@', '*', 'console', 'api', 'gitea', 'harbor'],
}
const toOwner = (relative: string, fqdn: string) => (relative === '@' ? fqdn : `${relative}.${fqdn}`)
const toSets = (fqdn: string, names: readonly string[], address: string) =>
  names.map(name => ({ name: toOwner(name, fqdn), type: 'A', ttl: 300, values: [address] }))

/** What pool-domain-manager leaves: its table, and the zones at PowerDNS. */
const startScene = async (form: keyof typeof forms) => {
  await using cleanup = new AsyncDisposableStack()
  const postgres = await startDedicatedPostgres()
  cleanup.defer(() => postgres.remove())
  const powerdns = cleanup.use(await startPowerdns())
  const home = cleanup.use(createCliFolder())
  await powerdns.createZone(POOL)
  const pdmUrl = await postgres.createDatabase()
  const pdm = postgres.connect(pdmUrl)
  await pdm`
    create table pool_allocations (
      pool_domain text not null, subdomain text not null, state text not null, reserved_at timestamptz not null,
      expires_at timestamptz, sovereign_fqdn text, load_balancer_ip text, reservation_token uuid, created_by text not null,
      primary key (pool_domain, subdomain))`
  const rows = [
    ...active.map((subdomain, i) => ({
      subdomain,
      state: 'active',
      address: toAddress(i),
      token: null,
      minutes: null,
    })),
    { subdomain: 'pending', state: 'reserved', address: null, token: reservedToken, minutes: 60 },
    { subdomain: 'late', state: 'reserved', address: null, token: '9d7c1f8e-2b3a-4c5d-8e9f-0a1b2c3d4e5f', minutes: -1 },
  ]
  for (const { subdomain, state, address, token: uuid, minutes } of rows) {
    const fqdn = `${subdomain}.${POOL}`
    await pdm`
      insert into pool_allocations values (${POOL}, ${subdomain}, ${state}, now() - interval '1 day',
        now() + make_interval(mins => ${minutes}::int), ${address === null ? null : fqdn}, ${address}, ${uuid}, 'catalyst-api')`
    const zone = form === 'zones' ? fqdn : POOL
    if (form === 'zones') {
      await powerdns.createZone(fqdn)
      await powerdns.put(POOL, { name: fqdn, type: 'NS', ttl: 3600, values: NAMESERVERS.map(name => `${name}.`) })
    }
    if (address !== null) await powerdns.edit(zone, { remove: [], put: toSets(fqdn, forms[form], address) })
  }
  const readTable = async () => JSON.stringify(await pdm`select * from pool_allocations order by subdomain`)

  const startService = async () => {
    const { url, apiKey } = powerdns.options
    return startApi(await postgres.createDatabase(), {
      ...{ DNSPROVIDER_KIND: 'powerdns', DNSPROVIDER_POWERDNS_URL: url, DNSPROVIDER_POWERDNS_API_KEY: apiKey },
      ...{ DNSPROVIDER_MANAGED_DOMAINS: POOL, DNSPROVIDER_RECORD_NAMES: forms[form].join() },
      ...{ PDM_OPERATOR_TOKENS: token, PDM_DNS_COMMIT_WAIT: '1m', PDM_RECORDS: 'records' },
    })
  }
  const write = (name: string, text: string) => {
    writeFileSync(join(home.folder, name), text, { mode: 0o600 })
    return join(home.folder, name)
  }
  const bin = write('poolctl', `#!/bin/sh\nexec '${process.execPath}' '${ENTRY}' "$@"\n`)
  chmodSync(bin, 0o700)
  const variables = {
    ...{ ...home.env, PATH: `${home.folder}:${process.env.PATH}`, POOL },
    ...{ PDM_URL_FILE: write('pdm.url', `${pdmUrl}\n`), DNS_SERVER: '127.0.0.1', DNS_PORT: `${powerdns.dnsPort}` },
    POWERDNS: `${powerdns.options.url}/api/v1/servers/localhost`,
    POWERDNS_HEADER: write('powerdns.header', `X-API-Key: ${powerdns.options.apiKey}\n`),
  }
  const shell = (commands = 'false') =>
    promisify(execFile)('bash', ['-ec', commands], { cwd: home.folder, env: variables, maxBuffer: MAX_OUTPUT }).then(
      ({ stdout }) => stdout,
    )
  const restart = async () => {
    const service = await startService()
    await shell(`poolctl contexts set test --api ${service.operatorUrl} --api-token-file ${write('token', token)}`)
    return service
  }
  const api = cleanup.use(await restart())

  // A resolver that asks for every tenant all the time, and leaves the processor to the migration.
  const resolver = new Resolver({ tries: 4 })
  resolver.setServers([`127.0.0.1:${powerdns.dnsPort}`])
  const wrong: string[] = []
  const ended = new AbortController()
  let rounds = 0
  const resolve = (name: string) => resolver.resolve4(`${name}.${POOL}`).catch(({ code }) => [code])
  const ask = async () => {
    for (; !ended.signal.aborted; rounds += 1) {
      for (const [i, subdomain] of active.entries()) {
        for (const name of ['console', 'anything']) {
          let answer = await resolve(`${name}.${subdomain}`)
          // PowerDNS reads a zone without a snapshot: a query during its deletion can find nothing, the next one does not.
          if (answer[0] === 'ENOTFOUND') answer = await resolve(`${name}.${subdomain}`)
          if (String(answer) !== toAddress(i)) wrong.push(`${name}.${subdomain}: ${answer}`)
        }
      }
      await sleep(ASK_INTERVAL_MS)
    }
  }
  const asking = ask()
  cleanup.defer(async () => {
    ended.abort()
    await asking
  })
  /** The wrong answers until now, after at least one more round. */
  const answers = async () => {
    const round = rounds
    await until('every tenant was asked', () => rounds > round + 1)
    return wrong
  }
  cleanup.defer(() =>
    reportProof(`${form}: ${active.length} names, ${rounds} rounds of queries, ${wrong.length} wrong`),
  )
  const owned = cleanup.move()
  return {
    ...{ powerdns, api, pdm, restart, shell, answers, readTable, folder: home.folder },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

const timeout = isProof ? 3_600_000 : 600_000
const skip = [missingPowerdns, missingDig, missingTool].map(shouldSkip).includes(true)

describe.skipIf(skip).each(['records', 'zones'] as const)('pool-domain-manager with %s', { timeout }, form => {
  test('is moved by the page: the same answers throughout, the tokens of its clients, its table untouched', async () => {
    await using scene = await startScene(form)
    const { powerdns, api, pdm, shell, answers, readTable, folder } = scene
    await pdm`insert into pool_allocations select 'other.test', subdomain, state, reserved_at, expires_at, sovereign_fqdn,
      load_balancer_ip, reservation_token, created_by from pool_allocations where subdomain = 'acme'`
    for (const flag of ['--dry-run', '--tokens-file tokens.json --yes']) {
      const stderr = expect.stringContaining('a name of other.test, which this service does not manage')
      const import_ = shell(`poolctl migrate-from-pdm --database-url-file "$PDM_URL_FILE" ${flag}`)
      await expect(import_, flag).rejects.toMatchObject({ code: 3, stderr })
    }
    expect(readdirSync(folder)).not.toContain('tokens.json')
    await pdm`delete from pool_allocations where pool_domain = 'other.test'`
    const table = await readTable()
    const zone = await powerdns.records(POOL)
    const check = async (sub: string) => (await api.call('GET', `${path}/check?sub=${sub}`)).body.reason
    await until('unknown names are kept', async () => (await check('acme')) === 'active-state')
    expect((await api.call('POST', `${path}/reserve`, { subdomain: 'acme' })).body.error).toBe('conflict')
    expect(api.lines.filter(line => line.includes('unknown names are kept'))).toHaveLength(1)
    expect(await shell(PREVIEW)).toMatch(/acme\.pool\.test +active +203\.0\.113\.10\n/)
    const planned = await shell(IMPORT)
    expect(planned.includes('publish')).toBe(form === 'zones')
    expect(planned.match(/pending.pool.test .*database reserved/g)?.length).toBe(form === 'zones' ? 1 : undefined)
    expect([await readTable(), await powerdns.records(POOL)]).toEqual([table, zone])
    expect(statSync(join(folder, 'tokens.json')).mode & 0o777).toBe(0o600)
    expect([await check('acme'), await check('pending'), await check('late')]).toEqual([
      'active-state',
      'reserved-state',
      undefined,
    ])

    await shell(SWITCH)
    const sets = active.flatMap((name, i) => toSets(`${name}.${POOL}`, forms[form], toAddress(i)))
    const isTenant = ({ type }: { type: string }) => type !== 'TXT'
    const owners = (list: readonly { name: string; type: string }[]) =>
      list.map(({ name, type }) => `${name} ${type}`).sort()
    expect(owners((await powerdns.records(POOL)).filter(isTenant))).toEqual(owners(sets))
    if (form === 'zones') {
      // Records of other writers, in a zone that the move deletes.
      const challenge = { name: `_acme-challenge.acme.${POOL}`, type: 'TXT', ttl: 60, values: [`"${'x'.repeat(43)}"`] }
      const extra = { name: `extra.acme.${POOL}`, type: 'A', ttl: 300, values: ['203.0.113.77'] }
      const changed = { name: `api.globex.${POOL}`, type: 'A', ttl: 300, values: ['203.0.113.78'] }
      await powerdns.edit(`acme.${POOL}`, { remove: [], put: [challenge, extra] })
      await powerdns.put(`globex.${POOL}`, changed)
      const toLine = ({ name, type, values }: typeof extra) => `${name}. ${type} ${values}\n`
      expect(await shell(LIST_LOST)).toBe([challenge, changed, extra].map(toLine).join(''))
      const carryOver = `set +e
        ${CARRY_OVER?.replace('VALUE', 'x'.repeat(43))}
        poolctl records set ${extra.name} A ${extra.values} --token-file acme.token --timeout 5s`
      await until('the zone of the pool has them', async () => {
        await shell(carryOver).catch(() => {})
        return (await shell(LIST_LOST)) === toLine(changed)
      })
      // In another shell than the list, nothing is deleted.
      await expect(shell(REMOVE_ZONES)).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('list') })
      const unlisted = { ...extra, name: `unlisted.initech.${POOL}` }
      await powerdns.put(`initech.${POOL}`, unlisted)
      await expect(shell(`${LIST_LOST?.split('while')[0]}${REMOVE_ZONES}`)).rejects.toMatchObject({
        code: 1,
        stderr: `initech.${POOL}: other answers\n`,
        stdout: expect.stringContaining(unlisted.name),
      })
      await shell(`set +e\n${LIST_LOST?.split('while')[0]}${REMOVE_ZONES}`)
      expect(await powerdns.call('GET', `/zones/acme.${POOL}.`)).toBe(undefined)
    }
    expect(await answers()).toEqual([])

    // The clients: the one that had reserved a name, that of an active name, and one that wants a new name.
    const commit = (subdomain: string, reservationToken: string) => {
      const fields = {
        subdomain,
        reservationToken,
        sovereignFQDN: `${subdomain}.${POOL}`,
        loadBalancerIP: '203.0.113.99',
      }
      return api.call('POST', `${path}/commit`, fields)
    }
    expect((await commit('pending', reservedToken)).body).toMatchObject({ dns: { status: 'published' } })
    const late = await api.call('POST', `${path}/reserve`, { subdomain: 'late' })
    expect((await commit('late', late.body.reservationToken)).body).toMatchObject({ dns: { status: 'published' } })
    const tokens = JSON.parse(readFileSync(join(folder, 'tokens.json'), 'utf8'))
    expect(tokens.map(({ subdomain }: { subdomain: string }) => subdomain)).toEqual(active)
    const update = { subdomain: 'initech', reservationToken: tokens[2].reservationToken, loadBalancerIP: toAddress(2) }
    // It failed while the zone hid it.
    await until('it is published', async () => (await api.call('POST', `${path}/update`, update)).status === 200)
    expect(await answers()).toEqual([])
    expect(await readTable()).toBe(table)
  })

  // Without zones, there is nothing to create again.
  test.runIf(form === 'zones' || isProof)(
    'is fallen back to by the page: the zones as before, the same answers throughout',
    async () => {
      await using scene = await startScene(form)
      const { powerdns, api, shell, answers, restart } = scene
      // By hand: a name without a row, and what a delegation can have beside its name servers.
      const values = ['ns1.other.test.', 'ns2.other.test.']
      const ds = `1234 13 2 ${'ab'.repeat(32)}`
      await powerdns.put(POOL, { name: `manual.${POOL}`, type: 'NS', ttl: 3600, values })
      if (form === 'zones') await powerdns.put(POOL, { name: `acme.${POOL}`, type: 'DS', ttl: 600, values: [ds] })
      const before = await powerdns.records(POOL)
      const isSame = async () =>
        expect((await powerdns.records(POOL)).filter(({ type }) => type !== 'TXT')).toEqual(before)
      const attempt = async () => {
        expect(await shell(IMPORT)).toMatch(/withdraw +manual\.pool\.test/)
        await shell(ADOPT?.replace('NAME', 'manual'))
        await shell(SWITCH)
      }
      await attempt()
      await api.process.stop()
      if (form === 'zones') await shell(FALL_BACK)
      await isSame()
      await using second = await restart()
      await until('the zone is stopped', () => second.lines.some(line => line.includes('other-installation')))
      await shell(page.match(/rm tokens\.json/)?.[0])
      await attempt()
      expect((await powerdns.records(POOL)).find(({ name }) => name === `manual.${POOL}`)).toMatchObject({ values })
      await second.process.stop()
      if (form === 'zones') await shell(FALL_BACK)
      await isSame()
      expect(await answers()).toEqual([])
    },
  )
})

test('a name that cannot be imported, another database and a used file are named, and nothing is sent', async () => {
  await using cleanup = new AsyncDisposableStack()
  const postgres = await startDedicatedPostgres()
  cleanup.defer(() => postgres.remove())
  const home = cleanup.use(createCliFolder())
  const { runPoolctl } = await import('./support/cli.ts')
  const file = join(home.folder, 'pdm.url')
  const url = await postgres.createDatabase()
  const pdm = postgres.connect(url)
  const run = async (...args: readonly string[]) => {
    writeFileSync(file, url, { mode: 0o600 })
    const all = ['migrate-from-pdm', '--database-url-file', file, ...args]
    return runPoolctl(all, { env: home.env })
  }
  expect(await run('--dry-run')).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('has no table') })
  await pdm`
    create table pool_allocations (pool_domain text, subdomain text, state text, reserved_at timestamptz,
      expires_at timestamptz, load_balancer_ip text, reservation_token uuid, created_by text)`
  const insert = (subdomain: string, address: string | null) => pdm`
    insert into pool_allocations values ('pool.test', ${subdomain}, 'active', now(), null, ${address}, null, 'test')`
  await insert('1st', '203.0.113.1')
  await insert('acme', '203.0.113.10')
  const first = '  1st.pool.test: the subdomain is not valid\n'
  const stderr = `error: 1 name cannot be imported; release it in pool-domain-manager, then repeat:\n${first}`
  // The names that can be imported, and no advice about the command line.
  expect(await run('--dry-run', '--output', 'name')).toEqual({ exitCode: 2, stdout: 'acme.pool.test\n', stderr })
  expect(await run('--tokens-file', 'new.json')).toEqual({ exitCode: 2, stdout: '', stderr })
  await insert('nowhere', null)
  const two = await run('--dry-run')
  expect(two.stderr).toContain(`error: 2 names cannot be imported; release them in`)
  expect(two.stderr).toContain(`${first}  nowhere.pool.test: load_balancer_ip is not valid\n`)
  expect(await run('--tokens-file', file)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('exists') })
  expect(await run()).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--tokens-file') })
  expect(stderr).not.toContain(url)
})
