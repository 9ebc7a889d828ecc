import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { startAllocationApi, type TestAllocationApi } from '@pool/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CliOptions, createCliFolder, runPoolctl } from './support/cli.ts'

let api: TestAllocationApi
let sql: Sql
const home = createCliFolder()
const tokenFile = join(home.folder, 'operator-token')

const run = (line: string, options: CliOptions = {}) =>
  runPoolctl(line.split(' '), { env: home.env, fetch: globalThis.fetch, ...options })

/** Every text that poolctl printed in this file. */
const printed: string[] = []
const poolctl = async (line: string, options: CliOptions = {}) => {
  const result = await run(line, options)
  printed.push(result.stdout, result.stderr)
  return result
}

beforeAll(async () => {
  api = await startAllocationApi({ env: { PDM_NAME_COOL_OFF: '1h', PDM_BYO_PROOF: 'off' } })
  sql = createDatabaseClient(api.databaseUrl, { maxConnections: 1, applicationName: 'tests' })
  // A list, as the file of the service is during a rotation.
  writeFileSync(tokenFile, `${api.operatorToken}, the-former-token`, { mode: 0o600 })
  await poolctl(`contexts set test --api ${api.operatorUrl} --api-token-file ${tokenFile}`)
})
afterAll(async () => {
  await sql?.end({ timeout: 1 })
  await api?.stop()
  home[Symbol.dispose]()
})

const storedTokens = (): string[] => {
  const folder = join(home.folder, 'state')
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map(file => join(folder, file))
    .filter(file => statSync(file).isFile())
}

describe('names', () => {
  test('a name is reserved, committed, updated, listed and released', async () => {
    expect(await poolctl('names check acme pool.test')).toMatchObject({ exitCode: 0 })
    const reserved = await poolctl('names reserve acme pool.test --created-by ci')
    expect(reserved).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^name: +acme\.pool\.test\nstate: +reserved\n/),
    })
    expect(await poolctl('names check acme.pool.test')).toMatchObject({ exitCode: 1 })
    expect(await poolctl('names renew acme.pool.test')).toMatchObject({ exitCode: 0 })
    expect(await poolctl('names commit acme pool.test --address 203.0.113.10 --wait')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/dns: +published/),
    })
    expect(await poolctl('names wait acme.pool.test')).toMatchObject({ exitCode: 0 })
    expect(await poolctl('names update acme.pool.test --address 203.0.113.20')).toMatchObject({ exitCode: 0 })
    const listed = JSON.parse((await poolctl('names list pool.test -o json')).stdout)
    expect(listed.allocations).toMatchObject([{ subdomain: 'acme', state: 'active', loadBalancerIP: '203.0.113.20' }])
    expect((await poolctl('names list pool.test -o name')).stdout).toBe('acme.pool.test\n')
    for (const names of ['pool.test acme', 'acme pool.test', 'acme.pool.test']) {
      const events = (await poolctl(`names history ${names} -o ndjson`)).stdout.trim().split('\n')
      expect(events.map(line => JSON.parse(line).event)).toContain('committed')
      expect(new Set(events.map(line => JSON.parse(line).subdomain))).toEqual(new Set(['acme']))
    }
    expect(await poolctl('names history acme.other.test')).toMatchObject({ exitCode: 3 })
    expect(await poolctl('names release acme.pool.test --yes')).toMatchObject({
      exitCode: 0,
      stdout: 'acme.pool.test is released.\n',
    })
  })

  test('the former client takes a name back during its cool-off, and an operator lifts it', async () => {
    await poolctl('names reserve globex.pool.test')
    await poolctl('names commit globex.pool.test --address 203.0.113.10')
    await poolctl('names release globex.pool.test --yes')
    const check = await poolctl('names check globex.pool.test -o json')
    expect(JSON.parse(check.stdout)).toMatchObject({ reason: 'cooling-off' })
    expect(await poolctl('names reserve globex.pool.test')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('your former token took it back'),
    })
    await poolctl('names release globex.pool.test --yes')
    expect(await poolctl('zones cool-off lift globex pool.test --yes')).toMatchObject({ exitCode: 0 })
    expect(await poolctl('zones cool-off lift globex pool.test --yes')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('404 not-found'),
    })
  })

  test('a reservation whose response is lost is the same one when the command is repeated', async () => {
    const isReserve = { method: 'POST', path: '/api/v1/pool/pool.test/reserve' }
    const fault = await api.delay(60_000, isReserve)
    const lost = await poolctl('names reserve initech.pool.test --timeout 300ms')
    expect(lost).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('may have taken effect') })
    await fault.cancel()
    await api.dropNextResponse(isReserve)
    expect(await poolctl('names reserve initech.pool.test')).toMatchObject({ exitCode: 0 })
    expect(await poolctl('names commit initech.pool.test --address 203.0.113.11')).toMatchObject({ exitCode: 0 })
  })

  test('--token-file has the token, for this user only, and the store has none', async () => {
    const file = join(home.folder, 'hooli.token')
    const reserved = await poolctl(`names reserve hooli.pool.test --token-file ${file}`)
    expect(reserved).toMatchObject({ exitCode: 0 })
    const [, hint = ''] = /Commit it with: poolctl (.*)/.exec(reserved.stderr) ?? []
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await poolctl('names renew hooli.pool.test')).toMatchObject({ exitCode: 2 })
    expect(await poolctl(`names renew hooli.pool.test --token-file ${file}`)).toMatchObject({ exitCode: 0 })
    expect(await poolctl(hint.replace('IP', '203.0.113.19'))).toMatchObject({ exitCode: 0 })
  })

  test('a rejected request is 3, with the code of the service', async () => {
    await poolctl('names reserve taken.pool.test')
    await poolctl('names commit taken.pool.test --address 203.0.113.12')
    expect(await poolctl('names commit taken.pool.test --address 203.0.113.12')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('(409 already-active)'),
    })
    expect(await poolctl('names get nothing.pool.test')).toMatchObject({ exitCode: 3 })
    expect(await poolctl('names list other.example')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('unsupported-pool'),
    })
  })

  test('search finds names of all pools by each flag', async () => {
    await poolctl('names reserve starkville.pool.test --created-by region-b')
    await poolctl('names reserve stark.pool.test --created-by ci')
    await poolctl('names commit stark.pool.test --address 198.51.100.7 --wait')
    const find = async (flags: string) => (await poolctl(`names search ${flags} -o name`)).stdout
    expect(await find('sta')).toBe('stark.pool.test\nstarkville.pool.test\n')
    expect(await find('stark.pool.te')).toBe('stark.pool.test\n')
    expect(await find('sta --state active --dns published')).toBe('stark.pool.test\n')
    expect(await find('--address 198.51.100')).toBe('stark.pool.test\n')
    expect(await find('sta --created-by region-')).toBe('starkville.pool.test\n')
    expect(await find('sta --limit 1')).toBe('stark.pool.test\n')
    expect(await poolctl('names search sta --pool other.test')).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: 'No name matches.\n',
    })
    expect(await poolctl('names search --address 300')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('address must be an IPv4 address'),
    })
  })

  test('describe has the desired records, and a name that is free', async () => {
    const { stdout } = await poolctl('names describe stark.pool.test')
    expect(stdout).toMatch(/^name: +stark\.pool\.test\nstate: +active\n/)
    expect(stdout).toMatch(/record: +stark\.pool\.test \d+ A 198\.51\.100\.7\n/)
    expect((await poolctl('names describe nothing.pool.test')).stdout).toMatch(/state: +free\n/)
  })

  test('diff is 0 for published records', async () => {
    expect(await poolctl('names diff stark.pool.test')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('stark.pool.test: the name has its desired records.\n'),
    })
  })

  test('--dry-run of release, update and lift lists the changes and changes nothing', async () => {
    const released = await poolctl('names release stark.pool.test --dry-run')
    expect(released).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('goes from active to cooling-off; for 1h'),
    })
    expect(released.stdout).toMatch(/delete +stark\.pool\.test +A/)
    const updated = await poolctl('names update stark.pool.test --address 198.51.100.8 --dry-run')
    expect(updated).toMatchObject({ exitCode: 0, stderr: 'stark.pool.test stays active.\n' })
    expect(updated.stdout).toMatch(/upsert +stark\.pool\.test +A +\d+ +198\.51\.100\.8/)
    expect((await poolctl('names describe stark.pool.test')).stdout).toContain('198.51.100.7')
    await poolctl('names release stark.pool.test --yes')
    expect(await poolctl('zones cool-off lift stark.pool.test --dry-run')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('goes from cooling-off to free.'),
    })
    expect((await poolctl('names describe stark.pool.test')).stdout).toMatch(/state: +cooling-off\n/)
  })

  test('--limit ends a list, and JSON stays valid', async () => {
    const { stdout } = await poolctl('names history pool.test --limit 2 -o json')
    expect(JSON.parse(stdout).entries).toHaveLength(2)
    expect(
      JSON.parse((await poolctl('names list pool.test --state reserved --limit 1000 -o json')).stdout),
    ).toHaveProperty('allocations')
  })
})

describe('zones', () => {
  test('list has every zone', async () => {
    const { stdout } = await poolctl('zones list -o json')
    expect(JSON.parse(stdout)).toMatchObject({
      provider: { writesZones: true },
      zones: [{ zone: 'pool.test', status: 'managed' }],
    })
    expect((await poolctl('zones list')).stdout).toMatch(/^ZONE +STATUS .*\npool\.test +managed /)
  })

  test('diff is 0 without a difference; converge and republish succeed', async () => {
    await expect.poll(async () => (await poolctl('zones diff pool.test')).exitCode).toBe(0)
    expect(await poolctl('zones converge pool.test')).toMatchObject({
      exitCode: 0,
      stderr: expect.not.stringMatching(/written|repaired/),
    })
    await sql`insert into local_dns_record_sets (zone, reversed_name, type, ttl, record_values)
      select zone, replace(reversed_name, '.taken', '.orphan'), type, ttl, record_values from local_dns_record_sets
      where reversed_name ~ '[.]taken'`
    await sql`delete from local_dns_record_sets where reversed_name = 'test.pool.taken'`
    const { stdout, stderr } = await poolctl('zones converge pool.test --dry-run')
    expect(stderr).toBe('comparing the zone pool.test\nDry run: nothing was changed.\n')
    expect(await poolctl('zones converge pool.test')).toMatchObject({
      stdout,
      stderr:
        'comparing the zone pool.test\nChanges, written: 1.\nOrphans, not repaired: 1; run: poolctl zones orphans adopt pool.test, or remove.\n',
    })
    expect((await poolctl('zones orphans remove pool.test --yes')).stderr).toContain('1 removed.')
    expect(await poolctl('zones republish pool.test --dry-run')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('pool.test: every name has the current template.\n'),
    })
    expect(await poolctl('zones republish pool.test')).toMatchObject({ exitCode: 0 })
    expect(await poolctl('zones former-records pool.test -o json')).toMatchObject({
      exitCode: 0,
      stdout: '{\n  "records": []\n}\n',
    })
  })

  test('orphans are listed, adopted and removed; without any, nothing changes', async () => {
    expect(await poolctl('zones orphans list pool.test')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('pool.test: no orphans.\n'),
    })
    expect(await poolctl('zones orphans adopt pool.test --yes -o json')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('"changedCount": 0'),
    })
    expect(await poolctl('zones orphans remove pool.test nothing --dry-run')).toMatchObject({ exitCode: 0 })
  })

  test('resume of a zone that is written is rejected', async () => {
    expect(await poolctl('zones resume pool.test --trust database --dry-run')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('not-stopped'),
    })
  })
})

describe('deployments, buckets, credentials', () => {
  const keyFile = join(home.folder, 'id.pub')
  const unknown = '4f1c2a9e-0b7d-4c58-9a51-2f7d5f3b9c10'

  test('without Terraform, or with invalid input, a deployment is not created', async () => {
    writeFileSync(keyFile, 'not a key')
    const result = await poolctl(
      `deployments create --org-name Acme --org-email nonsense --pool pool.test --subdomain depl --provider local --region local --ssh-public-key ${keyFile}`,
    )
    expect(result).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('400 invalid-deployment') })
    // Every invalid field has its line.
    expect(result.stderr).toMatch(/\n {2}orgEmail: /)
    expect(result.stderr).toMatch(/\n {2}sshPublicKey: /)
  })

  test.each([
    'get',
    'logs',
    'logs -f',
    'apply',
    'plan',
    'destroy --yes',
    'cancel --yes',
    'delete --yes',
    'abandon --yes',
    'unlock --yes',
  ])('deployments %s of an unknown deployment is rejected', async command => {
    expect(await poolctl(`deployments ${command} ${unknown}`)).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('404 not-found'),
    })
  })

  test('there are no bucket claims and no deployments', async () => {
    expect(await poolctl('deployments list')).toMatchObject({ exitCode: 0, stdout: '', stderr: 'No deployments.\n' })
    expect(await poolctl('deployments history')).toMatchObject({ exitCode: 0 })
    expect(await poolctl('buckets list -o json')).toMatchObject({ stdout: '{\n  "buckets": []\n}\n' })
    expect(await poolctl('buckets lift catalyst-acme --yes')).toMatchObject({ exitCode: 3 })
  })

  test('a challenge has the record that proves a domain', async () => {
    const { stdout } = await poolctl('deployments challenge cloud.acme.example')
    expect(stdout).toMatch(/^name: +_pool-challenge\.cloud\.acme\.example\ntype: +TXT\n/)
  })

  test('keys from a file are sent, and the answer decides the exit code', async () => {
    const keys = join(home.folder, 'keys.json')
    writeFileSync(keys, JSON.stringify({ accessKey: 'SECRETACCESSKEY00000', secretKey: 'SECRETSECRETKEY'.repeat(4) }), {
      mode: 0o600,
    })
    // No object storage is configured to be reached.
    const result = await poolctl(`credentials validate --region fsn1 --keys-file ${keys} --timeout 2s --verbose`)
    expect([1, 3, 4]).toContain(result.exitCode)
    expect(result.stderr).toContain('/api/v1/credentials/object-storage/validate')
  })
})

describe('doctor, export, import', () => {
  test('doctor finds no problem', async () => {
    const { exitCode, stdout } = await poolctl('doctor')
    expect(stdout).toMatch(/good +zone pool\.test +it has its desired records/)
    expect(stdout).toMatch(/not checked +witness/)
    expect(exitCode).toBe(0)
  })

  test('doctor at the in-cluster listener reports that operators need another', async () => {
    await poolctl(`contexts set cluster --api ${api.url}`)
    const { exitCode, stdout } = await poolctl('doctor --context cluster')
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/not checked +api operator +.*operator listener/)
    for (const command of ['zones list', 'names search --dns failing', 'buckets list']) {
      const { exitCode, stderr } = await poolctl(`${command} --context cluster`)
      expect({ exitCode, stderr }).toEqual({
        exitCode: 3,
        stderr: expect.stringContaining('needs the operator listener'),
      })
    }
  })

  test('an address of something else is a problem, and the hint names the service and the context', async () => {
    const addresses = [
      ['witness', api.url, 'lease witness'],
      ['witness', `${api.url}/v1`, 'lease witness'],
      ['witness', api.operatorUrl, 'lease witness'],
      ['api', `${api.url}/v1`, 'allocation API'],
      ['api', `${api.operatorUrl}/prefix`, 'allocation API'],
    ]
    for (const [service = '', url = '', what] of addresses) {
      using other = createCliFolder()
      const { env } = other
      const token = service === 'api' ? ` --api-token-file ${tokenFile}` : ''
      await poolctl(`contexts set mine --${service} ${url}${token}`, { env })
      const { exitCode, stdout } = await poolctl('doctor', { env })
      expect(stdout, url).toMatch(new RegExp(`bad +${service} .*address of .*${what}`))
      expect(stdout, url).toContain(`poolctl contexts set mine --${service} URL`)
      expect(exitCode, url).toBe(1)
      const line = service === 'api' ? 'names get a.pool.test' : 'leases get a'
      const { exitCode: code, stderr } = await poolctl(line, { env })
      expect([code, stderr], url).toEqual([3, expect.stringMatching(/contexts set mine/)])
    }
  })

  test('elect prints why it waits, once for each reason', async () => {
    await poolctl('contexts set elsewhere --witness https://witness.example')
    const interrupted = new AbortController()
    const statuses = [401, 401, 404]
    const fetch = async () => {
      const status = statuses.shift() ?? 500
      if (statuses.length === 0) setImmediate(() => interrupted.abort('SIGINT'))
      return Response.json({ error: status === 404 ? 'not-found' : 'unauthorized' }, { status })
    }
    const line = 'leases elect a --lease-duration 4s --grace 0s --context elsewhere -- true'
    const { exitCode, stderr } = await run(line, { fetch, interrupted: interrupted.signal })
    expect(exitCode).toBe(130)
    expect(stderr.match(/401 unauthorized/g)).toHaveLength(1)
    expect(stderr.match(/404 not-found/g)).toHaveLength(1)
    expect(stderr).toContain('poolctl contexts set elsewhere --witness URL')
  })

  test('an export is complete, for this user only, and a database with rows rejects it', async () => {
    const file = join(home.folder, 'export.ndjson')
    expect(await poolctl(`export ${file}`)).toMatchObject({ exitCode: 0 })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const lines = readFileSync(file, 'utf8').trim().split('\n')
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ type: 'end' })
    expect(await poolctl(`export ${file}`)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('exists') })
    expect(await poolctl(`import ${file} --yes`)).toMatchObject({
      exitCode: 3,
      stderr: expect.stringContaining('not-empty'),
    })
    expect(await poolctl(`import ${file} --from pool.test --to pool.test --dry-run`)).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/nothing was changed\.\n$/),
    })
  })

  test('an export that is interrupted leaves no file', async () => {
    const folder = join(home.folder, 'exports')
    mkdirSync(folder)
    const fault = await api.partition({ path: '/api/v1/export' })
    const interrupted = new AbortController()
    const running = poolctl(`export ${join(folder, 'x.ndjson')}`, { interrupted: interrupted.signal })
    await expect.poll(() => readdirSync(folder).length).toBe(1)
    interrupted.abort('SIGINT')
    expect(await running).toMatchObject({ exitCode: 130 })
    expect(readdirSync(folder)).toEqual([])
    await fault.cancel()
  })
})

describe('unavailable services', () => {
  test('Ctrl-C ends a wait at once', async () => {
    await poolctl('names reserve waited.pool.test')
    await poolctl('names commit waited.pool.test --address 203.0.113.10')
    const silence = await api.partition({ method: 'GET', path: /waited/ })
    const interrupted = new AbortController()
    const waiting = poolctl('names wait waited.pool.test', { interrupted: interrupted.signal })
    await silence.occurred()
    interrupted.abort('SIGINT')
    expect(await waiting).toMatchObject({ exitCode: 130, stdout: '' })
    await silence.cancel()
    expect(await poolctl('names wait waited.pool.test')).toMatchObject({ exitCode: 0 })
  })

  test.each(['names commit blocked.pool.test --address 203.0.113.10 --wait', 'names wait blocked.pool.test'])(
    'a record of another writer ends "%s" with the reason',
    async command => {
      await sql`insert into local_dns_record_sets (zone, reversed_name, type, ttl, record_values)
        values ('pool.test', 'test.pool.blocked', 'CNAME', 300, '{elsewhere.example.}') on conflict do nothing`
      await poolctl('names reserve blocked.pool.test')
      const { exitCode, stderr } = await poolctl(command)
      expect(stderr).toMatch(/error: blocked\.pool\.test is not published: A record of type CNAME .* Delete it/)
      expect(exitCode).toBe(3)
    },
  )

  test('the in-cluster listener cannot tell a conflict, so a wait continues until --wait-timeout', async () => {
    await poolctl(`contexts set cluster --api ${api.url}`)
    expect(await poolctl('names wait blocked.pool.test --wait-timeout 1s --context cluster')).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining('the status is failing'),
    })
  })

  test('an address without a service is 4', async () => {
    await poolctl('contexts set nowhere --api http://127.0.0.1:1')
    const result = await poolctl('names get acme.pool.test --context nowhere --timeout 200ms')
    expect(result).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('poolctl doctor') })
  })

  test('a wrong token is 3, and says where the token comes from', async () => {
    const file = join(home.folder, 'wrong-token')
    writeFileSync(file, 'wrong-SECRET-token', { mode: 0o600 })
    await poolctl(`contexts set wrong --api ${api.operatorUrl} --api-token-file ${file}`)
    expect(await poolctl('buckets list --context wrong')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringMatching(/credential that was sent is not one .*401 unauthorized[\s\S]*contexts show/),
    })
  })

  test('Ctrl-C waits for the response to a write, and keeps its token', async () => {
    const delayed = await api.delay(300, { method: 'POST' })
    const interrupted = new AbortController()
    const sent = new Promise<void>(resolve => {
      const fetchOnce: typeof fetch = (...args) => {
        const response = globalThis.fetch(...args)
        resolve()
        return response
      }
      void poolctl('names reserve slow.pool.test', { interrupted: interrupted.signal, fetch: fetchOnce }).then(
        result => {
          results.push(result)
        },
      )
    })
    const results: { exitCode: number; stderr: string }[] = []
    await sent
    interrupted.abort('SIGINT')
    await expect.poll(() => results.length).toBe(1)
    expect(results[0]).toMatchObject({ exitCode: 130, stderr: expect.stringContaining('press Ctrl-C again to stop') })
    await delayed.cancel()
    expect(await poolctl('names renew slow.pool.test')).toMatchObject({ exitCode: 0 })
  })
})

test('without its database: doctor reports no check of it as good, and an error has one truth about the effect', async () => {
  const [{ text = '' } = {}] = await sql<{ text: string }[]>`select pg_read_file('postmaster.pid') as text`
  await sql.end({ timeout: 1 })
  process.kill(Number.parseInt(text, 10), 'SIGQUIT')
  // The service keeps the result of a check for a moment.
  for (const path of ['healthz', 'readyz'])
    await expect.poll(async () => (await fetch(`${api.url}/${path}`)).status, { timeout: 30_000 }).toBe(503)
  const { exitCode, stdout } = await poolctl('doctor --timeout 5s')
  expect(exitCode).toBe(1)
  expect(stdout.match(/^good +(api.*?) {2}/gm)?.map(line => line.trim())).toEqual([
    expect.stringContaining('api process'),
  ])
  expect(stdout).toMatch(/bad +api +the service responds, but its database does not/)
  expect(stdout).toMatch(/bad +api readiness +it accepts no requests/)
  const { stderr } = await poolctl('names reserve lost.pool.test --timeout 2s')
  expect(stderr).toContain('repeat the command')
  expect(stderr).not.toMatch(/Nothing changed|not executed/)
})

test('no secret was printed', () => {
  const files = storedTokens()
  expect(files.every(file => (statSync(file).mode & 0o777) === 0o600)).toBe(true)
  const tokens = files.flatMap(file => JSON.parse(readFileSync(file, 'utf8')).token ?? [])
  expect(tokens.length).toBeGreaterThan(2)
  const all = printed.join('\n')
  for (const secret of [
    ...tokens,
    api.operatorToken,
    'wrong-SECRET-token',
    'SECRETACCESSKEY00000',
    'SECRETSECRETKEY',
  ]) {
    expect(all.includes(secret)).toBe(false)
  }
})
