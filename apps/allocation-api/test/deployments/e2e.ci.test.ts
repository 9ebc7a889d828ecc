import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Deployment } from '@pool/contract'
import { deploymentRequest, storageSection } from '@pool/test-kit/deployment-request.ts'
import { until } from '@pool/test-kit/poll.ts'
import { isProof, proofSize } from '@pool/test-kit/proof-size.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createDnsClient } from '../support/consistency.ts'
import { type Identities, makeIdentities, startFakeObjectStorage, withStorageNames } from '../support/credentials.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { copyDeploymentModule, type DeploymentModule } from '../support/deployment-module.ts'
import { followStream, toMessages } from '../support/events.ts'
import { countLockWaiters, lockDeployment, lockRow } from '../support/locks.ts'
import { createContractCall } from '../support/service.ts'
import { isTerraformMissing, withoutCollector } from '../terraform/support/terraform.ts'

const LEASE_MS = 30_000
const credentials = { accessKey: 'accesskey-0123456789', secretKey: 'secret-key-of-at-least-thirty-two-characters' }

/** The API as a process, with Terraform, Postgres and the local DNS server. */
describe.skipIf(isTerraformMissing)('a deployment from request to end', () => {
  let database: TestDatabase
  let identities: Identities
  let storage: Awaited<ReturnType<typeof startFakeObjectStorage>>
  let module: DeploymentModule
  let dataDir: string
  let api: Api | undefined

  beforeAll(async () => {
    database = await createTestDatabase({ connections: 14 })
    identities = await makeIdentities()
    module = copyDeploymentModule()
    storage = await startFakeObjectStorage(identities.good, module.bucketFolder)
    dataDir = await mkdtemp(join(tmpdir(), 'deployments-'))
  })
  afterAll(async () => {
    module.remove()
    await storage.close()
    await identities.remove()
    await rm(dataDir, { recursive: true, force: true })
    await database.drop()
  })
  afterEach(async () => {
    await api?.process.stop()
    api = undefined
  })

  const startApiProcess = (env: Record<string, string>): Promise<Api> =>
    startApi(database.url, {
      NODE_OPTIONS: withStorageNames,
      DNSPROVIDER_RECORD_NAMES: '@,*',
      OBJECT_STORAGE_DOMAIN: `storage.test:${storage.port}`,
      OBJECT_STORAGE_CA_FILE: identities.caFile,
      ...module.env,
      PDM_DEPLOYMENTS_DIR: dataDir,
      PDM_TERRAFORM_PASS_ENV: Object.keys(withoutCollector).join(),
      ...withoutCollector,
      ...env,
    })
  /** Stopped after the test. */
  const start = async (env: Record<string, string> = {}): Promise<Api> => {
    api = await startApiProcess(env)
    return api
  }
  const tokens = new Map<string, string>()
  const create = async (service: Api, subdomain: string, hasCredentials = true): Promise<string> => {
    const answer = await createContractCall(service.url)(
      'POST',
      '/api/v1/deployments',
      deploymentRequest(subdomain, hasCredentials ? storageSection(credentials) : {}),
    )
    if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text}`)
    expect(answer.body.status).toBe('provisioning')
    tokens.set(answer.body.id, answer.body.deploymentToken)
    return answer.body.id
  }
  /** Calls a deployment as its owner. */
  const callAsOwner = (service: Api, method: string, id: string, tail = '', body?: object) =>
    createContractCall(service.url)(method, `/api/v1/deployments/${id}${tail}`, body, {
      'X-Deployment-Token': tokens.get(id) ?? '',
    })
  const readDeployment = async (service: Api, id: string): Promise<Deployment> =>
    (await createContractCall(service.url)('GET', `/api/v1/deployments/${id}`)).body
  const waitUntilFinished = (service: Api, id: string): Promise<Deployment> =>
    until('finished', async () => {
      const deployment = await readDeployment(service, id)
      return deployment.finishedAt !== null && deployment
    })
  const isFree = async (service: Api, subdomain: string): Promise<boolean> =>
    (await service.call('GET', `/api/v1/pool/pool.test/check?sub=${subdomain}`)).body.available
  const waitUntilResolves = (service: Api, subdomain: string, address: string | undefined) =>
    until(`${subdomain} resolves`, async () => {
      const found = await createDnsClient(service.dnsPort)(`${subdomain}.pool.test`)
      return Array.isArray(found) && found[0] === address
    })

  describe('in a shared process', () => {
    let service: Api
    beforeAll(async () => {
      service = await startApiProcess({ PDM_DEPLOYMENT_CONCURRENCY: '3' })
    })
    afterAll(async () => {
      await service.process.stop()
      expect(await readdir(join(dataDir, 'work'))).toEqual([])
    })

    test.concurrent('is reserved, streamed live, applied, committed and resolvable; its log can be replayed from any line', async () => {
      module.set('hold', 'acme.pool.test')
      const id = await create(service, 'acme')
      const logs = `${service.url}/api/v1/deployments/${id}/logs`
      const live = await followStream(logs)
      await until('a line of the apply arrives during the apply', () =>
        live.events().some(({ data }) => data.includes('holding')),
      )
      expect(await isFree(service, 'acme')).toBe(false)
      expect(await readDeployment(service, id)).toMatchObject({
        status: 'provisioning',
        objectStorageBucket: 'catalyst-acme-pool-test',
      })
      module.clear('hold', 'acme.pool.test')
      const events = await live.ended
      const deployment = await readDeployment(service, id)
      expect(deployment).toMatchObject({
        status: 'ready',
        numEvents: events.length - 1,
        result: {
          sovereignFQDN: 'acme.pool.test',
          loadBalancerIP: expect.stringMatching(/^198\.1[89]\./),
          details: { object_storage_secret: 'hetzner-object-storage' },
        },
      })
      expect(events.at(-1)).toMatchObject({ name: 'done', data: JSON.stringify(deployment) })
      await waitUntilResolves(service, 'acme', deployment.result?.loadBalancerIP)
      const replayed = await (await followStream(logs)).ended
      expect(replayed).toEqual(events)
      const middle = Math.floor(events.length / 2)
      const rest = await (await followStream(logs, { 'Last-Event-ID': String(middle) })).ended
      expect(rest.map(({ data }) => data)).toEqual(events.slice(middle).map(({ data }) => data))
      expect((await callAsOwner(service, 'DELETE', id)).body).toMatchObject({ error: 'still-up' })
      expect(await isFree(service, 'acme')).toBe(false)
    })

    test.concurrent('that fails midway keeps its name and shows the reason; an apply resumes from its state', async () => {
      module.set('fail', 'unlucky.pool.test')
      const id = await create(service, 'unlucky')
      expect(await waitUntilFinished(service, id)).toMatchObject({
        status: 'failed',
        error: expect.stringContaining('The cloud has no machine left of this size.'),
      })
      expect(await isFree(service, 'unlucky')).toBe(false)
      module.clear('fail', 'unlucky.pool.test')
      const { numEvents } = await readDeployment(service, id)
      const keys = storageSection(credentials)
      expect((await callAsOwner(service, 'POST', id, '/apply', keys)).status).toBe(202)
      const { status, error } = await waitUntilFinished(service, id)
      expect([status, error]).toEqual(['ready', undefined])
      const logs = `${service.url}/api/v1/deployments/${id}/logs`
      const messages = toMessages(await (await followStream(logs, { 'Last-Event-ID': String(numEvents) })).ended)
      // The apply does not create again what the first one created.
      expect(messages.filter(message => /begun.*: Creat/.test(message))).toEqual([])
    })

    test.concurrent('that is cancelled during its apply is stopped and failed; its name stays with what it made', async () => {
      module.set('hold', 'regret.pool.test')
      const id = await create(service, 'regret')
      const live = await followStream(`${service.url}/api/v1/deployments/${id}/logs`)
      await until('the apply is in progress', () => live.events().some(({ data }) => data.includes('holding')))
      expect((await callAsOwner(service, 'DELETE', id)).status).toBe(202)
      expect(await waitUntilFinished(service, id)).toMatchObject({ status: 'failed', error: 'Cancelled.' })
      expect(await isFree(service, 'regret')).toBe(false)
      module.clear('hold', 'regret.pool.test')
    })

    test('many at once, three at a time: each gets its own result, and none is lost', async () => {
      const names = Array.from({ length: proofSize(10, 4) }, (_, i) => `one-of-many-${i}`)
      const ids = await Promise.all(names.map(name => create(service, name, name.endsWith('3'))))
      let maxProvisioning = 0
      await until('all are finished', async () => {
        const { body } = await service.call('GET', '/api/v1/deployments?status=provisioning')
        maxProvisioning = Math.max(maxProvisioning, body.deployments.length)
        const unfinished = await database.sql`select from deployments where finished_at is null`
        return unfinished.length === 0
      })
      expect(maxProvisioning).toBeGreaterThan(1)
      expect(maxProvisioning).toBeLessThanOrEqual(3)
      const ends = await Promise.all(ids.map(id => readDeployment(service, id)))
      expect(ends.map(({ status, sovereignFQDN }) => [status, sovereignFQDN])).toEqual(
        names.map(name => ['ready', `${name}.pool.test`]),
      )
      for (const [i, { result }] of ends.entries())
        await waitUntilResolves(service, names[i] ?? '', result?.loadBalancerIP)
      expect(await readdir(join(dataDir, 'work'))).toEqual([])
    })
  })

  test('whose process is paused for longer than its lease is applied by another process on the same machine', async () => {
    const fqdn = 'paused.pool.test'
    const paused = await start()
    module.set('hold', fqdn)
    const id = await create(paused, 'paused', false)
    const live = await followStream(`${paused.url}/api/v1/deployments/${id}/logs`)
    await until('the apply is in progress', () => live.events().some(({ data }) => data.includes('holding')))
    process.kill(paused.process.pid, 'SIGSTOP')
    await database.advance(LEASE_MS)
    // The first Terraform is not paused and holds the state lock.
    const service = await start()
    try {
      const isClaimed = async () =>
        (await database.sql`select from deployments where id = ${id} and run_generation = 2`).length > 0
      await until('another process claims it', isClaimed)
      await until('its Terraform has started', async () => (await readdir(join(dataDir, 'work'))).includes(`${id}.2`))
    } finally {
      process.kill(paused.process.pid, 'SIGCONT')
    }
    await until('the paused process loses its lease', () => paused.lines.some(line => line.includes('"lease-lost"')))
    module.clear('hold', fqdn)
    const end = await waitUntilFinished(service, id)
    expect(end).toMatchObject({ status: 'ready' })
    expect(await isFree(service, 'paused')).toBe(false)
    await waitUntilResolves(service, 'paused', end.result?.loadBalancerIP)
    expect(await readdir(join(dataDir, 'work'))).toEqual([])
    await paused.process.stop()
  })

  describe('whose process is killed', () => {
    const isStored = async (id: string, text: string) =>
      (await database.sql`select from deployment_log_lines where deployment_id = ${id} and message like ${`%${text}%`}`)
        .length > 0
    const isUp = async (id: string) =>
      (await database.sql`select from deployments where id = ${id} and result is not null`).length > 0
    const isActive = async (name: string) =>
      (await database.sql`select from pool_allocations where subdomain = ${name} and state = 'active'`).length > 0

    type Stage = readonly [
      stage: string,
      ends: readonly [withCredentials: string, withoutCredentials: string],
      reach: (id: string, name: string, fqdn: string) => Promise<() => Promise<void>>,
    ]
    const noRelease = async () => {}
    /** Each entry moves a deployment with a paused apply to its stage, and returns a function that continues it. */
    const stages: readonly Stage[] = [
      ['while Terraform runs', ['failed', 'ready'], async () => noRelease],
      [
        'after the apply, while its name is being committed',
        ['ready', 'ready'],
        async (id, name, fqdn) => {
          const { release } = await lockRow(database.sql, { poolDomain: 'pool.test', subdomain: name })
          module.clear('hold', fqdn)
          await until('the infrastructure is up', () => isUp(id))
          return release
        },
      ],
      [
        'after the commit of its name, before it is ready',
        ['ready', 'ready'],
        async (id, name, fqdn) => {
          const { release: releaseName } = await lockRow(database.sql, { poolDomain: 'pool.test', subdomain: name })
          module.clear('hold', fqdn)
          await until('the infrastructure is up', () => isUp(id))
          const { release } = await lockDeployment(database.sql, id)
          await releaseName()
          await until('its name is active', () => isActive(name))
          return release
        },
      ],
      [
        'after it failed, while its name is being released',
        ['failed', 'failed'],
        async (id, name, fqdn) => {
          const { release } = await lockRow(database.sql, { poolDomain: 'pool.test', subdomain: name })
          module.set('fail', fqdn)
          module.clear('hold', fqdn)
          await until('the log shows the release', () => isStored(id, 'Released the name.'))
          return release
        },
      ],
    ]

    interface StageResult {
      readonly id: string
      readonly name: string
      readonly end: Deployment
      readonly isFree: boolean
    }
    /** CI tests every stage with and without credentials; every day, those without whose end differs. */
    const stagesWithout = isProof ? stages : stages.filter(([, [withThem, without]]) => withThem !== without)
    /** One or two of each stage: with credentials, and without. */
    const results = new Map<string, readonly StageResult[]>()

    // All stages in one process. The second process resumes all deployments at its first tick.
    beforeAll(async () => {
      const concurrency = String(2 * stages.length)
      let service = await start({ PDM_DEPLOYMENT_CONCURRENCY: concurrency })
      const createAtStage = async ([stage, , reach]: Stage, index: number, credentials: 'with' | 'without') => {
        const name = `stage-${index}-${credentials}`
        const fqdn = `${name}.pool.test`
        module.set('hold', fqdn)
        const id = await create(service, name, credentials === 'with')
        await until('the apply is in progress', () => isStored(id, 'holding'))
        return { stage, id, name, fqdn, release: await reach(id, name, fqdn) }
      }
      // In two groups: on a busy machine, Terraform for all of them at the same time takes longer than one wait.
      const withCredentials = await Promise.all(stages.map((stage, index) => createAtStage(stage, index, 'with')))
      const withoutCredentials = await Promise.all(
        stagesWithout.map((stage, index) => createAtStage(stage, index, 'without')),
      )
      const deployments = [...withCredentials, ...withoutCredentials]
      const ids = deployments.map(({ id }) => id)
      const unfinished =
        await database.sql`select from deployments where id in ${database.sql(ids)} and finished_at is null`
      expect(unfinished).toHaveLength(ids.length)
      await service.process.kill()
      for (const { release } of deployments) await release()
      for (const { fqdn } of deployments) module.clear('hold', fqdn)
      // A statement of the killed process that waited for a lock could deadlock with the update of every row.
      await until('no statement of the killed process waits', async () => (await countLockWaiters(database.sql)) === 0)
      await database.advance(LEASE_MS)
      service = await start({ PDM_DEPLOYMENT_CONCURRENCY: concurrency })
      for (const { stage, id, name } of deployments) {
        const end = await waitUntilFinished(service, id)
        if (end.status === 'ready') await waitUntilResolves(service, name, end.result?.loadBalancerIP)
        results.set(stage, [...(results.get(stage) ?? []), { id, name, end, isFree: await isFree(service, name) }])
      }
      expect(await readdir(join(dataDir, 'work'))).toEqual([])
    })

    test.each(stages)('%s: after a restart each deployment finishes', (stage, ends) => {
      const found = results.get(stage) ?? []
      expect(found.map(({ end }) => end.status)).toEqual(ends.slice(0, found.length))
      expect(found.length).toBeGreaterThan(0)
      for (const { end, isFree } of found) {
        // What a failed one has created remains, and its name with it.
        expect(isFree).toBe(false)
        if (end.status === 'failed') {
          expect(end.error).toMatch(ends[1] === 'ready' ? /credentials were only in its memory/ : /no machine left/)
        }
      }
    })

    test('while it is queued: after a restart it finishes', async () => {
      let service = await start({ PDM_DEPLOYMENT_CONCURRENCY: '1' })
      module.set('hold', 'blocking.pool.test')
      const ids = [
        await create(service, 'blocking', false),
        await create(service, 'waiting', true),
        await create(service, 'idle', false),
      ]
      await service.process.kill()
      module.clear('hold', 'blocking.pool.test')
      await database.advance(LEASE_MS)
      service = await start({ PDM_DEPLOYMENT_CONCURRENCY: '3' })
      const ends = await Promise.all(ids.map(id => waitUntilFinished(service, id)))
      expect(ends.map(({ status }) => status)).toEqual(['ready', 'failed', 'ready'])
      expect(await isFree(service, 'waiting')).toBe(true)
    })
  })
})
