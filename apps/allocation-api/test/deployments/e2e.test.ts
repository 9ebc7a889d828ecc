import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Deployment } from '@pool/contract'
import { deploymentRequest, storageSection } from '@pool/test-kit/deployment-request.ts'
import { until } from '@pool/test-kit/poll.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Api, startApi } from '../support/api.ts'
import { type Identities, makeIdentities, withStorageNames } from '../support/credentials/identities.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { copyDeploymentModule, type DeploymentModule } from '../support/deployment-module.ts'
import { createDnsClient } from '../support/dns.ts'
import { followStream, messagesOf } from '../support/follow.ts'
import { createContractCall } from '../support/service.ts'
import { startStorageDouble } from '../support/storage-double.ts'
import { lacksTerraform } from '../terraform/support/terraform.ts'

const LEASE_MS = 30_000
const keys = { accessKey: 'accesskey-0123456789', secretKey: 'secret-key-of-at-least-thirty-two-characters' }

/** The whole of it: the API as a process, Terraform, Postgres, the local DNS server. */
describe.skipIf(lacksTerraform)('a deployment, from its request to its end', () => {
  let database: TestDatabase
  let identities: Identities
  let storage: Awaited<ReturnType<typeof startStorageDouble>>
  let module: DeploymentModule
  let folder: string
  let api: Api | undefined

  beforeAll(async () => {
    database = await createTestDatabase({ connections: 14 })
    identities = await makeIdentities()
    storage = await startStorageDouble(identities.good)
    module = copyDeploymentModule()
    folder = await mkdtemp(join(tmpdir(), 'deployments-'))
  })
  afterAll(async () => {
    module.remove()
    await storage.close()
    await identities.remove()
    await rm(folder, { recursive: true, force: true })
    await database.drop()
  })
  afterEach(async () => {
    await api?.process.stop()
    api = undefined
  })

  const start = async (more: Record<string, string> = {}): Promise<Api> => {
    api = await startApi(database.url, {
      NODE_OPTIONS: withStorageNames,
      DNSPROVIDER_RECORD_NAMES: '@,*',
      OBJECT_STORAGE_DOMAIN: `storage.test:${storage.port}`,
      OBJECT_STORAGE_CA_FILE: identities.caFile,
      PDM_TERRAFORM_MODULE: module.directory,
      PDM_DEPLOYMENTS_DIR: folder,
      ...more,
    })
    return api
  }
  const create = async (at: Api, subdomain: string, isKeyed = true): Promise<string> => {
    const answer = await createContractCall(at.url)(
      'POST',
      '/api/v1/deployments',
      deploymentRequest(subdomain, isKeyed ? storageSection(keys) : {}),
    )
    if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text}`)
    expect(answer.body.status).toBe('provisioning')
    return answer.body.id
  }
  const read = async (at: Api, id: string): Promise<Deployment> =>
    (await createContractCall(at.url)('GET', `/api/v1/deployments/${id}`)).body
  const finished = (at: Api, id: string): Promise<Deployment> =>
    until('finished', async () => {
      const deployment = await read(at, id)
      return deployment.finishedAt !== null && deployment
    })
  const isFree = async (at: Api, subdomain: string): Promise<boolean> =>
    (await at.call('GET', `/api/v1/pool/pool.test/check?sub=${subdomain}`)).body.available
  const resolves = (at: Api, subdomain: string, address: string | undefined) =>
    until(`${subdomain} resolves`, async () => {
      const found = await createDnsClient(at.dnsPort)(`${subdomain}.pool.test`)
      return Array.isArray(found) && found[0] === address
    })

  test('reserved, streamed live, made, committed, resolving; replayed from anywhere', async () => {
    const at = await start()
    module.set('hold', 'acme.pool.test')
    const id = await create(at, 'acme')
    const logs = `${at.url}/api/v1/deployments/${id}/logs`
    const live = await followStream(logs)
    await until('a line of the apply is there while it goes on', () =>
      live.events().some(({ data }) => data.includes('holding')),
    )
    expect(await isFree(at, 'acme')).toBe(false)
    expect(await read(at, id)).toMatchObject({ status: 'provisioning', objectStorageBucket: 'catalyst-acme-pool-test' })
    module.lift('hold', 'acme.pool.test')
    const events = await live.ended
    const deployment = await read(at, id)
    expect(deployment).toMatchObject({
      status: 'ready',
      numEvents: events.length - 1,
      result: {
        sovereignFQDN: 'acme.pool.test',
        loadBalancerIP: expect.stringMatching(/^127\./),
        details: { object_storage_secret: 'hetzner-object-storage' },
      },
    })
    expect(events.at(-1)).toMatchObject({ name: 'done', data: JSON.stringify(deployment) })
    await resolves(at, 'acme', deployment.result?.loadBalancerIP)
    const replayed = await (await followStream(logs)).ended
    expect(replayed).toEqual(events)
    const middle = Math.floor(events.length / 2)
    const rest = await (await followStream(logs, { 'Last-Event-ID': String(middle) })).ended
    expect(rest.map(({ data }) => data)).toEqual(events.slice(middle).map(({ data }) => data))
    expect(await readdir(join(folder, 'work'))).toEqual([])
    // A client that removes it gives its name back.
    expect((await createContractCall(at.url)('DELETE', `/api/v1/deployments/${id}`)).status).toBe(204)
    expect(await isFree(at, 'acme')).toBe(true)
  })

  test('that fails midway: its name free, failed, the reason readable; tried again it goes on', async () => {
    const at = await start()
    module.set('fail', 'unlucky.pool.test')
    const id = await create(at, 'unlucky')
    expect(await finished(at, id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('The cloud has no machine left of this size.'),
    })
    expect(await isFree(at, 'unlucky')).toBe(true)
    module.lift('fail', 'unlucky.pool.test')
    const again = await create(at, 'unlucky')
    expect(await finished(at, again)).toMatchObject({ status: 'ready' })
    const messages = messagesOf(await (await followStream(`${at.url}/api/v1/deployments/${again}/logs`)).ended)
    // What the first attempt had made is not made a second time.
    expect(messages.filter(message => /begun.*: Creat/.test(message))).toEqual([])
  })

  test('that is cancelled while it is made: stopped, failed, its name free', async () => {
    const at = await start()
    module.set('hold', 'regret.pool.test')
    const id = await create(at, 'regret')
    const live = await followStream(`${at.url}/api/v1/deployments/${id}/logs`)
    await until('it is being made', () => live.events().some(({ data }) => data.includes('holding')))
    expect((await createContractCall(at.url)('DELETE', `/api/v1/deployments/${id}`)).status).toBe(202)
    expect(await finished(at, id)).toMatchObject({ status: 'failed', error: 'Cancelled.' })
    expect(await isFree(at, 'regret')).toBe(true)
    module.lift('hold', 'regret.pool.test')
  })

  test('ten at once, three at a time: each its own, none lost', async () => {
    const at = await start({ PDM_DEPLOYMENT_CONCURRENCY: '3' })
    const names = Array.from({ length: 10 }, (_, i) => `one-of-ten-${i}`)
    const ids = await Promise.all(names.map(name => create(at, name, name.endsWith('3'))))
    const most = { here: 0 }
    await until(
      'all are finished',
      async () => {
        const { body } = await at.call('GET', '/api/v1/deployments?status=provisioning')
        most.here = Math.max(most.here, body.deployments.length)
        const open = await database.sql`select from deployments where finished_at is null`
        return open.length === 0
      },
      60_000,
    )
    expect(most.here).toBeGreaterThan(1)
    expect(most.here).toBeLessThanOrEqual(3)
    const ends = await Promise.all(ids.map(id => read(at, id)))
    expect(ends.map(({ status, sovereignFQDN }) => [status, sovereignFQDN])).toEqual(
      names.map(name => ['ready', `${name}.pool.test`]),
    )
    for (const [i, { result }] of ends.entries()) await resolves(at, names[i] ?? '', result?.loadBalancerIP)
    expect(await readdir(join(folder, 'work'))).toEqual([])
  })

  test('whose process is frozen for longer than its lease, and wakes: made by another, on the same machine', async () => {
    const fqdn = 'frozen.pool.test'
    const frozen = await start()
    module.set('hold', fqdn)
    const id = await create(frozen, 'frozen', false)
    const live = await followStream(`${frozen.url}/api/v1/deployments/${id}/logs`)
    await until('it is being made', () => live.events().some(({ data }) => data.includes('holding')))
    process.kill(frozen.process.pid, 'SIGSTOP')
    await database.advance(LEASE_MS)
    // The first Terraform, which nobody froze, has the lock of the state.
    const at = await start()
    try {
      const isTaken = async () =>
        (await database.sql`select from deployments where id = ${id} and run_generation = 2`).length > 0
      await until('it is taken up', isTaken)
      await until('Terraform has begun', async () => (await readdir(join(folder, 'work'))).includes(`${id}.2`))
    } finally {
      process.kill(frozen.process.pid, 'SIGCONT')
    }
    await until('the first gives way', () => frozen.lines.some(line => line.includes('"lease-lost"')))
    module.lift('hold', fqdn)
    const end = await finished(at, id)
    expect(end).toMatchObject({ status: 'ready' })
    expect(await isFree(at, 'frozen')).toBe(false)
    await resolves(at, 'frozen', end.result?.loadBalancerIP)
    expect(await readdir(join(folder, 'work'))).toEqual([])
    await frozen.process.stop()
  })

  describe('whose process is killed', () => {
    const isStored = async (id: string, text: string) =>
      (await database.sql`select from deployment_log_lines where deployment_id = ${id} and message like ${`%${text}%`}`)
        .length > 0
    const isUp = async (id: string) =>
      (await database.sql`select from deployments where id = ${id} and result is not null`).length > 0
    const isActive = async (name: string) =>
      (await database.sql`select from pool_allocations where subdomain = ${name} and state = 'active'`).length > 0

    /** Keeps every statement that wants this row waiting, until it is let go. */
    const lock = async (table: 'pool_allocations' | 'deployments', column: string, value: string) => {
      const sql = await database.sql.reserve()
      await sql`begin`
      await sql`select from ${sql(table)} where ${sql(column)} = ${value} for update`
      return async () => {
        await sql`rollback`
        sql.release()
      }
    }

    type Stage = readonly [
      stage: string,
      ends: readonly [keyed: string, keyless: string],
      reach: (id: string, name: string, fqdn: string) => Promise<() => Promise<void>>,
    ]
    const nothing = async () => {}
    /** Each brings a deployment whose apply is held to its stage, and returns what lets go of what keeps it there. */
    const stages: readonly Stage[] = [
      ['while Terraform works', ['failed', 'ready'], async () => nothing],
      [
        'when the infrastructure is up, while its name is committed',
        ['ready', 'ready'],
        async (id, name, fqdn) => {
          const letGo = await lock('pool_allocations', 'subdomain', name)
          module.lift('hold', fqdn)
          await until('it is up', () => isUp(id))
          return letGo
        },
      ],
      [
        'when its name is committed, before it is ready',
        ['ready', 'ready'],
        async (id, name, fqdn) => {
          const letNameGo = await lock('pool_allocations', 'subdomain', name)
          module.lift('hold', fqdn)
          await until('it is up', () => isUp(id))
          const letGo = await lock('deployments', 'id', id)
          await letNameGo()
          await until('its name is active', () => isActive(name))
          return letGo
        },
      ],
      [
        'while its name is freed, for it failed',
        ['failed', 'failed'],
        async (id, name, fqdn) => {
          const letGo = await lock('pool_allocations', 'subdomain', name)
          module.set('fail', fqdn)
          module.lift('hold', fqdn)
          await until('it says so', () => isStored(id, 'Released the name.'))
          return letGo
        },
      ],
    ]

    interface Killed {
      readonly id: string
      readonly name: string
      readonly end: Deployment
      readonly isFree: boolean
    }
    /** Of each stage one with keys and one without. */
    const killed = new Map<string, readonly Killed[]>()

    // All of them in one process, at once.
    beforeAll(async () => {
      let at = await start({ PDM_DEPLOYMENT_CONCURRENCY: String(2 * stages.length) })
      const begun = await Promise.all(
        stages.flatMap(([stage, , reach], index) =>
          ['keyed', 'keyless'].map(async keys => {
            const name = `stage-${index}-${keys}`
            const fqdn = `${name}.pool.test`
            module.set('hold', fqdn)
            const id = await create(at, name, keys === 'keyed')
            await until('Terraform works', () => isStored(id, 'holding'))
            return { stage, id, name, fqdn, letGo: await reach(id, name, fqdn) }
          }),
        ),
      )
      const ids = begun.map(({ id }) => id)
      const open = await database.sql`select from deployments where id in ${database.sql(ids)} and finished_at is null`
      expect(open).toHaveLength(ids.length)
      await at.process.kill()
      for (const { letGo } of begun) await letGo()
      for (const { fqdn } of begun) module.lift('hold', fqdn)
      await database.advance(LEASE_MS)
      at = await start()
      for (const { stage, id, name } of begun) {
        const end = await finished(at, id)
        if (end.status === 'ready') await resolves(at, name, end.result?.loadBalancerIP)
        killed.set(stage, [...(killed.get(stage) ?? []), { id, name, end, isFree: await isFree(at, name) }])
      }
      expect(await readdir(join(folder, 'work'))).toEqual([])
    })

    test.each(stages)('%s: started again, each comes to its end', (stage, ends) => {
      const found = killed.get(stage) ?? []
      expect(found.map(({ end }) => end.status)).toEqual(ends)
      for (const { end, isFree } of found) {
        expect(isFree).toBe(end.status === 'failed')
        if (end.status === 'failed') {
          expect(end.error).toMatch(ends[1] === 'ready' ? /credentials were only in its memory/ : /no machine left/)
        }
      }
    })

    test('as soon as it is accepted, while it waits for its turn: started again, it comes to its end', async () => {
      let at = await start({ PDM_DEPLOYMENT_CONCURRENCY: '1' })
      module.set('hold', 'blocking.pool.test')
      const ids = [
        await create(at, 'blocking', false),
        await create(at, 'waiting', true),
        await create(at, 'idle', false),
      ]
      await at.process.kill()
      module.lift('hold', 'blocking.pool.test')
      await database.advance(LEASE_MS)
      at = await start({ PDM_DEPLOYMENT_CONCURRENCY: '1' })
      const ends = await Promise.all(ids.map(id => finished(at, id)))
      expect(ends.map(({ status }) => status)).toEqual(['ready', 'failed', 'ready'])
      expect(await isFree(at, 'waiting')).toBe(true)
    })
  })
})
