import { execFile } from 'node:child_process'
import { chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { readRssMib } from '@pool/test-kit/processes.ts'
import { isProof, proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../src/ports.ts'
import { ensureDatabase, type Postgres, startPostgres } from '../../src/postgres.ts'
import { type NodeProcess, startNode } from '../../src/process.ts'
import { type Container, startBalancer, startContainer } from './support/container.ts'
import {
  type Image,
  ImageBuilder,
  isRoot,
  measureAddition,
  missingImageTools,
  readBundledPackages,
  readSbom,
} from './support/images.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const source = join(root, 'apps/allocation-api/src/main.ts')
/** A run that needs longer is not slow but stuck. */
const STUCK_MS = 240_000
const MAX_ADDITION_BYTES = 200_000_000
const TOKEN = 'token-of-region-a-0123456789abcdef'

const parseReady = (line: string): { port: number } | undefined => {
  const { msg, port } = line.startsWith('{') ? JSON.parse(line) : {}
  return msg === 'ready' ? { port } : undefined
}

/** The port of a service after it has logged that it is ready. */
const waitUntilReady = async ({ lines, exited }: Pick<Container, 'lines' | 'exited'>): Promise<number> => {
  let code: number | null | undefined
  void exited.then(exit => {
    code = exit
  })
  const ready = await until(
    'the service is ready',
    () => {
      if (code !== undefined) throw new Error(`exit code ${code} before it was ready:\n${lines.join('\n')}`)
      return lines.map(parseReady).find(Boolean)
    },
    STUCK_MS,
  )
  return ready.port
}

if (!isRoot) process.stderr.write('Skipped: the tests of the images, which need root\n')

describe.skipIf(!isRoot || shouldSkip(missingImageTools))('the images', () => {
  const cleanup = new AsyncDisposableStack()
  let postgres: Postgres
  let builder: ImageBuilder
  let api: Image
  let databases = 0

  beforeAll(async () => {
    const runScript = (app: string, script: string) =>
      promisify(execFile)('npx', ['-y', 'pnpm@12', '--filter', app, script], { cwd: root })
    // With TEST_BUNDLES=1 there are bundles, and other tests are running them.
    const hasBundles = process.env.TEST_BUNDLES === '1'
    await runScript('allocation-api', hasBundles ? 'write-sbom' : 'build')
    await runScript('lease-witness', hasBundles ? 'write-sbom' : 'build:postgres')
    const dataDir = await mkdtemp(join(tmpdir(), 'image-postgres-'))
    cleanup.defer(() => rm(dataDir, { recursive: true, force: true }))
    postgres = await startPostgres({ dataDir, fsync: false })
    cleanup.defer(async () => void (await postgres.stop('immediate')))
    builder = cleanup.use(await ImageBuilder.open())
    api = await builder.build('allocation-api')
  }, 600_000)
  afterAll(() => cleanup.disposeAsync(), 60_000)

  const createDatabase = (): Promise<string> => {
    databases += 1
    return ensureDatabase(postgres.url, `image_${databases}`)
  }
  const toApiEnv = (databaseUrl: string): Record<string, string> => ({
    PORT: '0',
    PDM_DATABASE_URL: databaseUrl,
    DNSPROVIDER_KIND: 'local',
    PDM_DRAIN_DELAY: '5s',
  })

  test('an image adds little to its base, runs as an unprivileged user, and lists its packages', async () => {
    const { config } = api
    expect(config).toMatchObject({
      Entrypoint: ['node'],
      Cmd: ['/app/main.js'],
      User: '65532:65532',
      Labels: { 'org.opencontainers.image.title': 'allocation-api', 'org.opencontainers.image.version': '1.0.0' },
      Healthcheck: { Test: ['CMD', 'node', '/app/healthcheck.js', '/livez'] },
    })
    const addition = await measureAddition(api, builder)
    expect(addition).toBeLessThan(MAX_ADDITION_BYTES)
    const packages = await readBundledPackages(api)
    expect(packages.length).toBeGreaterThan(20)
    expect(await readSbom(api)).toEqual(expect.arrayContaining([...packages]))
    reportProof(`image: allocation-api adds ${(addition / 1e6).toFixed(1)} MB, ${packages.length} packages`)
  })

  test('the API runs as PID 1 on a read-only root, and starts faster and smaller than its sources', async () => {
    const env = toApiEnv(await createDatabase())
    {
      await using migration = await startContainer({ image: api, env, command: ['/app/migrate.js'] })
      expect(await migration.exited, migration.lines.join('\n')).toBe(0)
      expect(migration.lines[0]).toMatch(/^applied: 0001-/)
    }
    const measure = async (start: () => Promise<{ port: number; pid: number; stop: () => PromiseLike<void> }>) => {
      const started = performance.now()
      const { port, pid, stop } = await start()
      const { status } = await fetch(`http://127.0.0.1:${port}/api/v1/pool/pool.test/check?sub=name`)
      const ms = performance.now() - started
      expect(status).toBe(200)
      const mib = readRssMib(pid)
      await stop()
      return { ms, mib }
    }
    const startSource = async () => {
      const child: NodeProcess = startNode({ entry: source, env: { ...env, NODE_DISABLE_COMPILE_CACHE: '1' } })
      const ready = await child.ready
      return { port: Number(ready.port), pid: child.pid, stop: async () => void (await child.kill()) }
    }
    const startImage = async () => {
      const container = await startContainer({ image: api, env })
      const port = await waitUntilReady(container)
      return { port, pid: await container.pid(), stop: () => container[Symbol.asyncDispose]() }
    }
    const figures: string[] = []
    for (let round = 1; round <= proofSize(2); round += 1) {
      const [before, after] = [await measure(startSource), await measure(startImage)]
      expect(after.mib).toBeLessThan(before.mib)
      figures.push(
        `${before.ms.toFixed(0)} ms ${before.mib.toFixed(0)} MiB -> ${after.ms.toFixed(0)} ms ${after.mib.toFixed(0)} MiB`,
      )
    }
    reportProof(`image: start to first response and memory, sources -> image: ${figures.join('; ')}`)

    await using container = await startContainer({ image: api, env })
    const port = await waitUntilReady(container)
    const facts = `
      const { readFileSync, writeFileSync } = require('node:fs')
      const attempt = path => { try { writeFileSync(path, ''); return 'written' } catch (error) { return error.code } }
      const command = readFileSync('/proc/1/cmdline', 'utf8').split('\\0')
      console.log(JSON.stringify({ command, uid: /^Uid:\\s+(\\d+)/m.exec(readFileSync('/proc/1/status', 'utf8'))[1], app: attempt('/app/x'), tmp: attempt('/tmp/x') }))`
    const { output } = await container.exec('node', '-e', facts)
    expect(JSON.parse(output)).toEqual({
      command: ['node', '/app/main.js', ''],
      uid: '65532',
      app: 'EROFS',
      tmp: 'written',
    })
    const withPort = ['/usr/bin/env', `PORT=${port}`, 'node', '/app/healthcheck.js']
    expect((await container.exec(...withPort, '/livez')).code).toBe(0)
    expect((await container.exec(...withPort, '/none')).code).toBe(1)
    for (const path of ['/readyz', '/openapi.json', '/docs/swagger-ui-bundle.js']) {
      expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(200)
    }
  })

  test('the API serves the console that it was built with, and none if its folder does not exist', async () => {
    const operatorPort = String(await freePort())
    const env = {
      ...toApiEnv(await createDatabase()),
      PDM_OPERATOR_PORT: operatorPort,
      PDM_OPERATOR_TOKENS: 'operator-token-0123456789-0123456789',
    }
    const read = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${operatorPort}${path}`)
      return { status: response.status, type: response.headers.get('Content-Type'), text: await response.text() }
    }
    await using container = await startContainer({ image: api, env })
    await waitUntilReady(container)
    const page = await read('/console')
    expect(page).toMatchObject({ status: 200, type: 'text/html; charset=utf-8' })
    const [, script = ''] = /src="(\/console\/assets\/[^"]+\.js)"/.exec(page.text) ?? []
    expect(await read(script)).toMatchObject({ status: 200, type: 'text/javascript; charset=utf-8' })
  })

  test('SIGTERM under load behind a proxy fails no request', async () => {
    const env = toApiEnv(await createDatabase())
    await using first = await startContainer({ image: api, env })
    await using second = await startContainer({ image: api, env })
    const ports = [await waitUntilReady(first), await waitUntilReady(second)]
    await using balancer = await startBalancer(ports)
    await until('both replicas are ready', () => balancer.ready().length === 2, STUCK_MS)
    const failures: string[] = []
    let requests = 0
    let isOver = false
    const load = async (client: number): Promise<void> => {
      while (!isOver) {
        requests += 1
        const body = JSON.stringify({ subdomain: `name-${client}-${requests}` })
        const headers = { 'Content-Type': 'application/json' }
        const response = await fetch(`http://127.0.0.1:${balancer.port}/api/v1/pool/pool.test/reserve`, {
          method: 'POST',
          headers,
          body,
        })
        const text = await response.text()
        if (response.status !== 201) failures.push(`${response.status} ${text}`)
      }
    }
    const clients = Array.from({ length: 8 }, (_, client) => load(client))
    const sent = (more: number) => {
      const target = requests + more
      return until(`${more} more requests`, () => requests >= target, STUCK_MS)
    }
    await sent(200)
    await first.signal('TERM')
    expect(await first.exited, first.lines.slice(-5).join('\n')).toBe(0)
    await sent(200)
    isOver = true
    await Promise.all(clients)
    expect(failures).toEqual([])
    expect(first.lines.some(line => line.includes('"msg":"stopped"'))).toBe(true)
    reportProof(`image: SIGTERM under load behind a proxy, ${requests} requests, ${failures.length} failed`)
  })

  // Each image takes long to build: outside the proof, that of the API stands for all.
  test.runIf(isProof)('the image with Terraform runs a deployment from request to destroy', async () => {
    await builder.makeTerraform()
    const image = await builder.build('allocation-api-deployments')
    const volume = await mkdtemp(join(tmpdir(), 'image-deployments-'))
    await chown(volume, 65_532, 65_532)
    await using container = await startContainer({
      image,
      env: toApiEnv(await createDatabase()),
      volumes: { '/var/lib/pool-allocation/deployments': volume },
    })
    const url = `http://127.0.0.1:${await waitUntilReady(container)}/api/v1/deployments`
    const started = performance.now()
    const created = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(deploymentRequest('acme')),
    })
    const { id, deploymentToken } = JSON.parse(await created.text())
    expect(created.status).toBe(201)
    const waitFor = (status: string) =>
      until(
        `the deployment is ${status}`,
        async () => {
          const deployment = JSON.parse(await (await fetch(`${url}/${id}`)).text())
          if (deployment.status === 'failed') throw new Error(JSON.stringify(deployment))
          return deployment.status === status
        },
        STUCK_MS,
      )
    await waitFor('ready')
    const headers = { 'X-Deployment-Token': deploymentToken }
    const destroy = await fetch(`${url}/${id}/destroy`, { method: 'POST', headers })
    expect(destroy.status, await destroy.text()).toBe(202)
    await waitFor('destroyed')
    reportProof(
      `image: a deployment from request to destroy in ${((performance.now() - started) / 1_000).toFixed(1)} s`,
    )
    await rm(volume, { recursive: true, force: true })
  })

  test.runIf(isProof)('the image of the witness on Postgres serves leases and stops on SIGTERM', async () => {
    const image = await builder.build('lease-witness')
    const packages = await readBundledPackages(image)
    expect(packages.length).toBeGreaterThan(2)
    expect(await readSbom(image)).toEqual(expect.arrayContaining([...packages]))
    await using container = await startContainer({
      image,
      env: { PORT: '0', WITNESS_DATABASE_URL: await createDatabase(), BEARER_TOKENS_CSV: TOKEN },
    })
    const port = await waitUntilReady(container)
    const response = await fetch(`http://127.0.0.1:${port}/healthz`)
    expect(response.status).toBe(200)
    await container.signal('TERM')
    expect(await container.exited).toBe(0)
  })
})
