import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { isListening, listenOnLoopback } from '@pool/dev/ports'
import { type NodeProcess, startNode } from '@pool/dev/process'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { missingPrograms } from '@pool/test-kit/kubernetes/programs.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { toApiEntry, toWitnessEntry } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KubernetesObject, readDatabaseExample, render } from './support/chart.ts'
import { listMountedKeys, type Secrets, secrets } from './support/pod.ts'

/** The entries of the images. */
const entries: Readonly<Record<string, string>> = {
  migrate: toApiEntry('migrate'),
  api: toApiEntry(),
  witness: toWitnessEntry(),
}

const findPod = (objects: readonly KubernetesObject[], name: string): KubernetesObject['spec'] =>
  objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name)?.spec.template.spec

const PROBES = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const

/** The result of a probe: a status, or whether a connection is accepted. */
const sendProbe = async (
  probe: KubernetesObject['spec'],
  ports: Readonly<Record<string, number>>,
): Promise<number | boolean> => {
  const target = probe.httpGet ?? probe.tcpSocket
  const port = ports[target.port]
  if (port === undefined) return false
  if (!probe.httpGet) return isListening(port)
  const response = await fetch(`http://127.0.0.1:${port}${target.path}`)
  await response.body?.cancel()
  return response.status
}

const runHook = (
  script: string,
  variables: readonly { readonly name: string; readonly value?: string }[],
): Promise<number | string | null> =>
  new Promise(resolve => {
    const env = Object.fromEntries(variables.map(({ name, value }) => [name, value]))
    execFile(process.execPath, ['-e', script], { env }, error => resolve(error === null ? 0 : (error.code ?? null)))
  })

describe.skipIf(shouldSkip(missingPrograms))('the containers of the pods as processes of this machine', () => {
  const suffix = randomBytes(6).toString('hex')
  const [owner, service] = [`allocation_owner_${suffix}`, `allocation_service_${suffix}`]
  const dsn = new URL(process.env.PDM_TEST_DSN ?? 'postgres://PDM_TEST_DSN-is-not-set')
  const toUrl = (database: string, user = dsn.username) =>
    Object.assign(new URL(dsn), { pathname: `/${database}`, username: user, password: 'password' }).href
  const databases = [owner, `witness_${suffix}`]
  const created: Secrets = {
    ...secrets,
    'pool-allocation-database/url': toUrl(owner, service),
    'pool-allocation-database/migration-url': toUrl(owner, owner),
    'lease-witness-database/url': Object.assign(new URL(dsn), { pathname: `/witness_${suffix}` }).href,
  }
  const running: NodeProcess[] = []
  let folder: string
  let admin: Sql
  let replicas: KubernetesObject[]
  let deployments: KubernetesObject[]

  /** Starts a container with its environment, and its mounted files in a folder. The ports are free ones. */
  const startContainer = async (
    spec: KubernetesObject['spec'],
    container: KubernetesObject['spec'],
    env: Record<string, string> = {},
  ): Promise<NodeProcess> => {
    const prefix = join(folder, container.name)
    for (const [path, { object, key }] of listMountedKeys(spec, container)) {
      const value = created[`${object}/${key}`]
      await mkdir(dirname(prefix + path), { recursive: true })
      await writeFile(prefix + path, `${value ?? ''}\n`)
    }
    const variables: [string, string][] = container.env.map(({ name, value }: { name: string; value: string }) => [
      name,
      /^\/(?:run|etc)\//.test(value) ? prefix + value : value,
    ])
    const child = startNode({
      entry: entries[container.name] ?? '',
      env: { ...Object.fromEntries(variables), PORT: '0', PDM_OPERATOR_PORT: '0', ...env },
    })
    running.push(child)
    return child
  }

  /** Sends the request of a Prometheus. */
  const scrape = async (name: string, ports: Readonly<Record<string, number>>): Promise<string> => {
    const monitor = replicas.find(({ kind, metadata }) => kind === 'ServiceMonitor' && metadata.name === name)
    const { port, path, authorization } = monitor?.spec.endpoints[0] ?? {}
    const { name: secret, key } = authorization?.credentials ?? {}
    const headers = authorization ? { authorization: `Bearer ${created[`${secret}/${key}`]}` } : {}
    const response = await fetch(`http://127.0.0.1:${ports[port]}${path}`, { headers })
    expect(response.status).toBe(200)
    return response.text()
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pool-chart-'))
    ;[replicas, deployments] = await Promise.all([render('three-replicas'), render('deployments')])
    admin = createDatabaseClient(dsn.href, { maxConnections: 1, applicationName: 'chart tests' })
    await admin.unsafe(`create role ${owner} login password 'password'`)
    await admin.unsafe(`create database ${owner} owner ${owner}`)
    await admin.unsafe(`create database witness_${suffix}`)
    const [cluster] = readDatabaseExample('allocation-api')
    const statements: string[] = cluster?.spec.bootstrap.initdb.postInitApplicationSQL
    const application = createDatabaseClient(Object.assign(new URL(dsn), { pathname: `/${owner}` }).href, {
      maxConnections: 1,
      applicationName: 'chart tests',
    })
    for (const statement of statements) {
      await application.unsafe(
        statement.replaceAll(/\ballocation_service\b/g, service).replaceAll(/\ballocation_owner\b/g, owner),
      )
    }
    await application.end()
    await admin.unsafe(`alter role ${service} password 'password'`)
  })

  afterAll(async () => {
    await Promise.all(running.map(child => child.kill()))
    for (const database of databases) await admin.unsafe(`drop database if exists ${database} with (force)`)
    for (const role of [service, owner]) await admin.unsafe(`drop role if exists ${role}`)
    await admin.end({ timeout: 1 })
    await rm(folder, { recursive: true, force: true })
  })

  test('the API: the migration owns the schema, the service has no right to change it, every probe succeeds', async () => {
    const spec = findPod(replicas, 'pool-allocation-api')
    const [migration] = spec.initContainers
    expect(migration.command).toEqual(['node', '/app/migrate.js'])
    const migrating = await startContainer(spec, migration)
    expect(await migrating.exited, migrating.lastLines().join('\n')).toEqual({ code: 0, signal: null })

    const [container] = spec.containers
    const child = await startContainer(spec, container)
    const ready = await child.ready
    const ports = { http: Number(ready.port), operator: Number(ready.operatorPort) }
    for (const name of PROBES) await until(name, async () => (await sendProbe(container[name], ports)) === 200)

    // Mutations: what a probe of a wrong path or port finds.
    const { httpGet } = container.readinessProbe
    expect(await sendProbe({ httpGet: { ...httpGet, path: '/ready' } }, ports)).toBe(404)
    expect(await sendProbe({ httpGet: { ...httpGet, port: 'operator' } }, ports)).not.toBe(200)

    const sql = createDatabaseClient(toUrl(owner, service), { maxConnections: 1, applicationName: 'chart tests' })
    await expect(sql`create table intruders (id int)`).rejects.toMatchObject({ code: '42501' })
    await expect(sql`drop table pool_allocations`).rejects.toMatchObject({ code: '42501' })
    await sql.end()

    const metrics = await scrape('pool-allocation-api', ports)
    expect(metrics).toContain('\npdm_deployments_active 0\n')

    const list = (headers: Record<string, string>) =>
      fetch(`http://127.0.0.1:${ports.operator}/api/v1/pool/pool.example/list`, { headers }).then(
        ({ status }) => status,
      )
    expect(await list({})).toBe(401)
    expect(await list({ authorization: `Bearer ${created['pool-allocation-operator/tokens']}` })).toBe(200)

    // The drain hook, at the port of this process. It ends because no deployment runs.
    const { env, lifecycle } = findPod(deployments, 'pool-allocation-api').containers[0]
    const hook = lifecycle.preStop.exec.command[2].replace('127.0.0.1:8080', `127.0.0.1:${ports.http}`)
    expect(await runHook(hook, env)).toBe(0)
    expect(await child.stop('SIGTERM', 1_000 * spec.terminationGracePeriodSeconds)).toEqual({ code: 0, signal: null })
    expect(await runHook(hook, env)).toBe(0)
  })

  test('the drain hook waits until no deployment runs, also through a failed request', async () => {
    const bodies = [
      'pdm_deployments_active 2\n',
      '',
      'pdm_deployments_active 10\n',
      '# HELP\npdm_deployments_active 0\n',
    ]
    let requests = 0
    const server = createServer((request, response) => {
      const body = bodies[requests]
      requests += 1
      if (request.url !== '/metrics' || body === '') request.socket.destroy()
      else response.end(body)
    })
    const port = await listenOnLoopback(server)
    const { env, lifecycle } = findPod(deployments, 'pool-allocation-api').containers[0]
    const { command } = lifecycle.preStop.exec
    expect(command.slice(0, 2)).toEqual(['node', '-e'])
    const script: string = command[2].replace('127.0.0.1:8080', `127.0.0.1:${port}`).replace('2_000', '20')
    expect(await runHook(script, env)).toBe(0)
    expect(requests).toBe(bodies.length)
    await new Promise(resolve => server.close(resolve))
  })

  test('the witness: every probe succeeds', async () => {
    const spec = findPod(replicas, 'pool-allocation-witness')
    const [container] = spec.containers
    const child = await startContainer(spec, container)
    const ready = await child.ready
    const ports = { http: Number(ready.port) }
    for (const name of PROBES) {
      await until(name, async () => [true, 200].includes(await sendProbe(container[name], ports)))
    }
    expect(await scrape('pool-allocation-witness', ports)).toContain('\nlease_witness_ready ')
    expect(await sendProbe({ httpGet: { path: '/readyz', port: 'http' } }, ports)).not.toBe(200)
    expect(await child.stop('SIGTERM', 1_000 * spec.terminationGracePeriodSeconds)).toEqual({ code: 0, signal: null })
  })
})
