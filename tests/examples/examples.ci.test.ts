import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LeaseClient } from '@pool/client/leases'
import { hardenedEnv } from '@pool/test-kit/hardened.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { Program } from '@pool/test-kit/program.ts'
import { startAllocationApi, startWitness, type TestAllocationApi, type TestWitness } from '@pool/testing'
import { build } from 'esbuild'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { parse as parseToml } from 'smol-toml'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import * as z from 'zod'
import { EXAMPLES, runTypeScript } from './support/election.ts'
import { startFencedResource } from './support/fenced-resource.ts'

let api: TestAllocationApi
let witness: TestWitness
let leases: LeaseClient
beforeAll(async () => {
  ;[api, witness] = await Promise.all([startAllocationApi({ env: hardenedEnv }), startWitness()])
  leases = new LeaseClient({ baseUrl: witness.url, token: witness.token })
})
afterAll(() => Promise.all([api?.stop(), witness?.stop()]))

const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'examples-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const readAllocation = async (subdomain: string) =>
  (await fetch(`${api.url}/api/v1/pool/pool.test/allocations/${subdomain}`)).json()

const missingTools = ['bash', 'curl', 'jq', 'setsid'].filter(tool => spawnSync(tool, ['--version']).error !== undefined)
const missing =
  process.platform !== 'linux'
    ? 'examples/bash: needs Linux'
    : missingTools.length > 0
      ? `examples/bash: missing ${missingTools.join(', ')} (apt-get install bash curl jq util-linux)`
      : undefined

describe.skipIf(shouldSkip(missing))('the scripts in bash', () => {
  const runName = (args: string[], env = {}) =>
    new Program({ command: join(EXAMPLES, 'bash/name.sh'), args, env: { API_URL: api.url, ...env } })

  test('publish a name once, although responses are lost', async () => {
    const faults = [await api.dropNextResponse({ path: '/api/v1/pool/pool.test/reserve' })]
    faults.push(await api.dropNextResponse({ path: '/api/v1/pool/pool.test/commit' }))
    await using published = runName(['publish', 'bash', '127.0.0.9'])
    expect([await published.exited, published.output]).toEqual([0, expect.stringContaining('reservationToken')])
    const token = { RESERVATION_TOKEN: JSON.parse(published.output).reservationToken }
    for (const fault of faults) await fault.occurred()
    expect(await readAllocation('bash')).toMatchObject({ state: 'active', dns: { status: 'published' } })

    await using taken = runName(['publish', 'bash', '127.0.0.9'])
    expect([await taken.exited, taken.output]).toEqual([1, expect.stringContaining('409')])

    const lost = await api.dropNextResponse({ method: 'DELETE' })
    await using released = runName(['release', 'bash'], token)
    expect([await released.exited, released.output]).toEqual([0, ''])
    await lost.occurred()
    await using absent = runName(['release', 'bash'], token)
    expect([await absent.exited, absent.output]).toEqual([1, expect.stringContaining('404')])
  })

  const withLease = (slot: string, ttlSeconds: number, ...command: readonly string[]) =>
    new Program({
      command: join(EXAMPLES, 'bash/with-lease.sh'),
      args: [slot, ...command],
      env: { WITNESS_URL: witness.url, WITNESS_TOKEN: witness.token, TTL_SECONDS: String(ttlSeconds) },
    })

  test('run a command while they hold a lease', async () => {
    await leases.acquire('bash/lease', { holder: 'other', generation: 0, ttlMs: 60_000 })
    await using waiting = withLease('bash/lease', 30, 'bash', '-c', 'echo "token $LEASE_TOKEN"; exit 7')
    await until('a waiting script', async () => {
      const { leases: found } = await leases.readMany(['bash/lease'])
      return found.some(lease => 'waiters' in lease && lease.waiters > 0)
    })
    expect(waiting.output).toBe('')
    await leases.release('bash/lease', { holder: 'other', generation: 1 })
    expect([await waiting.exited, waiting.output]).toEqual([7, 'token 3'])
    expect((await leases.read('bash/lease')).isVacant).toBe(true)
  })

  const commandThatWaits = ['bash', '-c', 'echo "started $$"; sleep 1000 & wait'] as const
  const untilStarted = (script: Program) =>
    until('the command', () => {
      if (script.hasExited) throw new Error(`exited:\n${script.output}`)
      return Number(/^started (\d+)/.exec(script.output)?.[1]) || undefined
    })
  const isAlive = (pid: number): boolean => spawnSync('kill', ['-0', String(pid)]).status === 0

  test('stop the command when the witness cannot be reached, and when the lease is lost', async () => {
    await using cutOff = withLease('bash/cut-off', 6, ...commandThatWaits)
    await using lost = withLease('bash/lost', 6, ...commandThatWaits)
    await Promise.all([untilStarted(cutOff), untilStarted(lost)])
    const partition = await witness.partition({ path: '/lease/bash%2Fcut-off' })
    expect(await cutOff.exited).toBe(75)
    await partition.cancel()
    // The script can renew between the read and the release.
    await until('the loss of the lease', async () => {
      const { lease } = await leases.read('bash/lost')
      const { kind } = await leases.release('bash/lost', { holder: lease.holder, generation: lease.generation })
      return kind === 'applied'
    })
    expect(await lost.exited).toBe(75)
  })

  test('stop the command when the script is killed', async () => {
    await using script = withLease('bash/killed', 30, ...commandThatWaits)
    const pid = await untilStarted(script)
    script.child.kill('SIGKILL')
    await until('the end of the command', () => !isAlive(pid))
  })
})

describe('the regional controller', () => {
  test('makes its region the primary one, and stands down before it releases the lease', async () => {
    await using resource = await startFencedResource()
    const args = ['--witness', witness.url, '--resource', resource.url, '--slot', 'controller', '--region', 'region-a']
    await using controller = new Program(
      runTypeScript('controller/src/main.ts', { WITNESS_TOKEN: witness.token }, ...args),
    )
    await controller.untilLogged('started leading')
    const leader = await until('the region in the resource', () => resource.leader)
    expect(leader).toEqual({ region: 'region-a', token: 1 })
    await controller.stop()
    expect(resource.leader).toBeUndefined()
    expect((await leases.read('controller')).isVacant).toBe(true)
  })
})

describe('the service in the cluster', () => {
  test('publishes a name once, although responses are lost and the service is killed, and changes its address', async () => {
    const folder = join(temporaryFolder(), 'state')
    const env = { ALLOCATION_API: api.url, STATE_DIR: folder, PORT: '0' }
    const start = async () => {
      const service = new Program(runTypeScript('service/src/main.ts', env))
      const { port } = await service.untilLogged('ready')
      const send = (method: string, body?: object) =>
        fetch(`http://127.0.0.1:${port}/tenants/service`, { method, ...(body ? { body: JSON.stringify(body) } : {}) })
      return { service, send }
    }
    const first = await start()
    await using _ = first.service
    expect((await first.send('PUT', { address: 'x' })).status).toBe(400)
    const silent = await api.partition({ path: '/api/v1/pool/pool.test/commit' })
    const cut = first.send('PUT', { address: '127.0.0.7' }).catch(() => 'no response')
    await silent.occurred()
    first.service.child.kill('SIGKILL')
    expect(await cut).toBe('no response')
    await silent.cancel()

    // As if the commit of the killed service had arrived late.
    const { reservationToken } = JSON.parse(readFileSync(join(folder, 'service.json'), 'utf8'))
    const commit = {
      subdomain: 'service',
      reservationToken,
      sovereignFQDN: 'service.pool.test',
      loadBalancerIP: '127.0.0.7',
    }
    await fetch(`${api.url}/api/v1/pool/pool.test/commit`, { method: 'POST', body: JSON.stringify(commit) })
    expect(await readAllocation('service')).toMatchObject({ state: 'active', loadBalancerIP: '127.0.0.7' })

    const second = await start()
    await using __ = second.service
    const faults = [
      await api.dropNextResponse({ path: '/api/v1/pool/pool.test/commit' }),
      await api.dropNextResponse({ path: '/api/v1/pool/pool.test/update' }),
    ]
    for (const address of ['127.0.0.8', '127.0.0.7', '127.0.0.8', '127.0.0.8']) {
      const response = await second.send('PUT', { address })
      expect(response.status).toBeOneOf([200, 202])
      expect(await response.json()).toMatchObject({ fqdn: 'service.pool.test' })
      expect(await readAllocation('service')).toMatchObject({ state: 'active', loadBalancerIP: address })
    }
    for (const fault of faults) await fault.occurred()
    expect((await second.send('DELETE')).status).toBe(204)
    expect((await second.send('DELETE')).status).toBe(404)
    expect((await fetch(`${api.url}/api/v1/pool/pool.test/allocations/service`)).status).toBe(404)
    await second.service.stop()
  })

  test('an error code of a later version keeps its status, so that the caller does not repeat for ever', async () => {
    const later = createServer((_, response) =>
      response.writeHead(409, { 'Content-Type': 'application/json' }).end('{"error":"later-code"}'),
    )
    await new Promise<void>(resolve => later.listen(0, '127.0.0.1', resolve))
    const { port: apiPort } = later.address() as AddressInfo
    const env = { ALLOCATION_API: `http://127.0.0.1:${apiPort}`, STATE_DIR: temporaryFolder(), PORT: '0' }
    await using service = new Program(runTypeScript('service/src/main.ts', env))
    const { port } = await service.untilLogged('ready')
    const response = await fetch(`http://127.0.0.1:${port}/tenants/later`, {
      method: 'PUT',
      body: '{"address":"127.0.0.7"}',
    })
    expect([response.status, await response.json()]).toMatchObject([409, { code: 'later-code' }])
    later.close()
  })
})

describe('the Worker', () => {
  const wrangler = z
    .object({
      compatibility_date: z.string(),
      vars: z.object({ SLOT: z.string() }),
      durable_objects: z.object({ bindings: z.array(z.object({ name: z.string(), class_name: z.string() })) }),
    })
    .parse(parseToml(readFileSync(join(EXAMPLES, 'worker/wrangler.toml'), 'utf8')))

  test('accepts the writes of the newest leader only, and shows the lease', async () => {
    const { outputFiles } = await build({
      entryPoints: [join(EXAMPLES, 'worker/src/index.ts')],
      bundle: true,
      write: false,
      format: 'esm',
      target: 'es2024',
      conditions: ['workerd', 'worker', 'import'],
      external: ['cloudflare:workers'],
    })
    await using stack = new AsyncDisposableStack()
    const worker = new Miniflare(
      convertV4MiniflareOptions({
        name: 'primary-region',
        modules: [{ type: 'ESModule', path: 'index.mjs', contents: outputFiles[0]?.text ?? '' }],
        compatibilityDate: wrangler.compatibility_date,
        durableObjects: Object.fromEntries(
          wrangler.durable_objects.bindings.map(({ name, class_name }) => [
            name,
            { className: class_name, useSQLite: true },
          ]),
        ),
        bindings: { ...wrangler.vars, LEASE_WITNESS: witness.url, WITNESS_TOKEN: witness.token, WRITE_TOKEN: 'write' },
        resourcePersistencePath: temporaryFolder(),
        host: '127.0.0.1',
        port: 0,
        cf: false,
      }),
    )
    stack.defer(() => worker.dispose())
    const url = (await worker.ready).origin
    const write = async (method: string, token: number, region?: string, bearer = 'write') => {
      const headers = { Authorization: `Bearer ${bearer}`, 'X-Fencing-Token': String(token) }
      return (await fetch(`${url}/primary`, { method, headers, ...(region ? { body: region } : {}) })).status
    }
    const read = async (path: string) => (await fetch(`${url}${path}`)).json()

    expect(await write('PUT', 3, 'region-a', 'other')).toBe(401)
    expect(await write('PUT', 3, 'region-a')).toBe(204)
    expect(await write('PUT', 5, 'region-b')).toBe(204)
    expect(await write('PUT', 4, 'region-a')).toBe(409)
    expect(await read('/primary')).toEqual({ region: 'region-b', fence: 5 })
    expect(await write('DELETE', 5)).toBe(204)
    expect(await write('PUT', 5, 'region-b')).toBe(409)

    await leases.acquire(wrangler.vars.SLOT, { holder: 'region-a_1', generation: 0, ttlMs: 60_000 })
    expect(await read('/leader')).toMatchObject({ leader: 'region-a_1', generation: 1 })
  })
})

describe('the CI workflow', () => {
  const workflow = parseYaml(readFileSync(join(EXAMPLES, 'ci/.github/workflows/test.yml'), 'utf8'))
  const { scripts } = JSON.parse(readFileSync(join(EXAMPLES, 'ci/package.json'), 'utf8'))

  test('runs the test script of the package', () => {
    const commands = workflow.jobs.test.steps.flatMap(({ run }: { run?: string }) => run ?? [])
    expect(commands).toEqual(['npm ci', 'npm test'])
    expect(scripts.test).toBe('vitest run')
  })
})

test('the scripts are executable', () => {
  const files = execFileSync('git', ['ls-files', '--stage', 'bash/*.sh'], { cwd: EXAMPLES, encoding: 'utf8' })
  expect(
    files
      .trim()
      .split('\n')
      .filter(line => !line.startsWith('100755 ')),
  ).toEqual([])
})
