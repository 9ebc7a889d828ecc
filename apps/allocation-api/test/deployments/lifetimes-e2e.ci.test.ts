import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Deployment } from '@pool/contract'
import { deploymentRequest, storageSection } from '@pool/test-kit/deployment-request.ts'
import { until } from '@pool/test-kit/poll.ts'
import { isProof } from '@pool/test-kit/proof-size.ts'
import { type Api, sendRequest, startApi } from '@pool/test-kit/services.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createDnsClient } from '../support/consistency.ts'
import { type Identities, makeIdentities, startFakeObjectStorage, withStorageNames } from '../support/credentials.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { copyDeploymentModule, type DeploymentModule } from '../support/deployment-module.ts'
import { followStream, toMessages } from '../support/events.ts'
import { lockDeployment, lockRow } from '../support/locks.ts'
import { createContractCall } from '../support/service.ts'
import { isTerraformMissing } from '../terraform/support/terraform.ts'

const LEASE_MS = 30_000
const keys = { accessKey: 'accesskey-0123456789', secretKey: 'secret-key-of-at-least-thirty-two-characters' }
const operatorToken = 'operator-token-of-the-lifetimes'

interface Owned {
  readonly id: string
  readonly token: string
}

/** The API as a process, with Terraform, Postgres and the local DNS server. */
describe.skipIf(isTerraformMissing)('the whole life of a name', () => {
  let database: TestDatabase
  let identities: Identities
  let storage: Awaited<ReturnType<typeof startFakeObjectStorage>>
  let module: DeploymentModule
  let dataDir: string
  let service: Api

  const start = async (): Promise<void> => {
    service = await startApi(database.url, {
      NODE_OPTIONS: withStorageNames,
      DNSPROVIDER_RECORD_NAMES: '@',
      PDM_OPERATOR_TOKENS: operatorToken,
      PDM_DEPLOYMENT_CONCURRENCY: '8',
      OBJECT_STORAGE_DOMAIN: `storage.test:${storage.port}`,
      OBJECT_STORAGE_CA_FILE: identities.caFile,
      ...module.env,
      PDM_DEPLOYMENTS_DIR: dataDir,
    })
  }
  beforeAll(async () => {
    database = await createTestDatabase({ connections: 14 })
    identities = await makeIdentities()
    module = copyDeploymentModule()
    storage = await startFakeObjectStorage(identities.good, module.bucketFolder)
    dataDir = await mkdtemp(join(tmpdir(), 'lifetimes-'))
    await start()
  })
  afterAll(async () => {
    module.remove()
    await service.process.stop()
    await storage.close()
    await identities.remove()
    await rm(dataDir, { recursive: true, force: true })
    await database.drop()
  })
  afterEach(async () => {
    // A directory of a killed inspection is removed when it is old.
    const names = await readdir(join(dataDir, 'work'))
    expect(names.filter(name => !name.startsWith('tmp-'))).toEqual([])
  })

  const create = (subdomain: string, fields: object = {}) =>
    createContractCall(service.url)('POST', '/api/v1/deployments', deploymentRequest(subdomain, fields))
  const createOwned = async (subdomain: string, fields: object = {}): Promise<Owned> => {
    const { status, body, text } = await create(subdomain, fields)
    if (status !== 201) throw new Error(text)
    return { id: body.id, token: body.deploymentToken }
  }
  const call = (method: string, { id, token }: Owned, tail = '', body?: object) =>
    createContractCall(service.url)(method, `/api/v1/deployments/${id}${tail}`, body, { 'X-Deployment-Token': token })
  const callAsOperator = (method: string, path: string) =>
    sendRequest(`${service.operatorUrl}${path}`, method, undefined, { Authorization: `Bearer ${operatorToken}` })
  const read = async ({ id }: Owned): Promise<Deployment> =>
    (await createContractCall(service.url)('GET', `/api/v1/deployments/${id}`)).body
  const waitUntilFinished = (owned: Owned): Promise<Deployment> =>
    until('finished', async () => {
      const deployment = await read(owned)
      return deployment.finishedAt !== null && deployment
    })
  const readLog = async ({ id }: Owned, after = 0): Promise<string[]> => {
    const url = `${service.url}/api/v1/deployments/${id}/logs`
    return toMessages(await (await followStream(url, { 'Last-Event-ID': String(after) })).ended)
  }
  const resolve = async (subdomain: string) => createDnsClient(service.dnsPort)(`${subdomain}.pool.test`)
  const check = async (subdomain: string) =>
    (await service.call('GET', `/api/v1/pool/pool.test/check?sub=${subdomain}`)).body
  const isStored = async ({ id }: Owned, text: string) =>
    (await database.sql`select from deployment_log_lines where deployment_id = ${id} and message like ${`%${text}%`}`)
      .length > 0
  /** Ids that Terraform gave to resources. */
  const toResourceIds = (messages: readonly string[]) =>
    messages.flatMap(message => /\[id=([^\]]+)\]/.exec(message)?.[1] ?? [])
  const findStatePath = async ({ id }: Owned): Promise<string> => {
    const [row] = await database.sql<{ key: string }[]>`select lineage_id as key from deployments where id = ${id}`
    return join(dataDir, 'state', row?.key ?? '', 'terraform.tfstate')
  }
  const readState = async (owned: Owned): Promise<{ resources: unknown[] }> =>
    JSON.parse(await readFile(await findStatePath(owned), 'utf8'))

  test('a second tenant of a name starts from nothing, whether the first one destroyed or an operator abandoned it', async () => {
    const first = await createOwned('shared', { orgName: 'Alpha' })
    const firstEnd = await waitUntilFinished(first)
    expect(firstEnd.status).toBe('ready')
    const firstIds = toResourceIds(await readLog(first))
    expect(firstIds.length).toBeGreaterThan(4)

    expect((await create('shared', { orgName: 'Beta' })).body.error).toBe('subdomain-conflict')
    const stranger = { id: first.id, token: '11111111-2222-4333-8444-555555555555' }
    for (const tail of ['/apply', '/destroy', '/plan']) {
      expect((await call('POST', stranger, tail)).body.error).toBe('token-mismatch')
    }
    expect((await call('DELETE', stranger)).body.error).toBe('token-mismatch')
    expect((await call('DELETE', first)).body.error).toBe('still-up')
    expect(await check('shared')).toMatchObject({ available: false, reason: 'active-state' })

    const planned = await call('POST', first, '/plan', { operation: 'destroy' })
    expect([planned.status, planned.body.operation]).toEqual([200, 'destroy'])
    expect(planned.body.text).toContain('to destroy')
    expect((await call('POST', first, '/destroy')).status).toBe(202)
    expect(await waitUntilFinished(first)).toMatchObject({ status: 'destroyed' })
    expect((await readState(first)).resources).toEqual([])
    expect(await resolve('shared')).not.toContain(firstEnd.result?.loadBalancerIP)
    expect(await check('shared')).toMatchObject({ available: true })

    const second = await createOwned('shared', { orgName: 'Beta' })
    const secondEnd = await waitUntilFinished(second)
    expect(secondEnd.status).toBe('ready')
    const secondLog = await readLog(second)
    expect(secondLog.filter(message => /Refresh|changed/.test(message) && !/ 0 changed/.test(message))).toEqual([])
    const markers = [...firstIds, first.id, first.token, 'Alpha']
    const seen = [JSON.stringify(secondEnd), ...secondLog].join('\n')
    expect(markers.filter(marker => seen.includes(marker))).toEqual([])

    // The first tenant's deployment cannot take the name back.
    expect((await call('POST', first, '/apply')).body.error).toBe('fqdn-remains')
    expect((await call('DELETE', first)).status).toBe(204)

    expect((await callAsOperator('DELETE', `/api/v1/deployments/${second.id}?abandon=true`)).status).toBe(204)
    const third = await createOwned('shared', { orgName: 'Gamma' })
    const thirdEnd = await waitUntilFinished(third)
    expect(thirdEnd.status).toBe('ready')
    const thirdSeen = [JSON.stringify(thirdEnd), ...(await readLog(third))].join('\n')
    const others = [...toResourceIds(secondLog), second.id, second.token, 'Beta']
    expect(others.filter(marker => thirdSeen.includes(marker))).toEqual([])
  })

  test('a destroy without its state fails and keeps the name; with an older state too; with its own it succeeds', async () => {
    const owned = await createOwned('lost')
    expect(await waitUntilFinished(owned)).toMatchObject({ status: 'ready' })
    const path = await findStatePath(owned)
    const older = await readFile(path)
    expect((await call('POST', owned, '/apply', { region: 'hel1' })).status).toBe(202)
    expect(await waitUntilFinished(owned)).toMatchObject({ status: 'ready' })
    const own = await readFile(path)
    await rm(path)
    const expectFailure = async (reason: RegExp) => {
      expect((await call('POST', owned, '/destroy')).status).toBe(202)
      const error = expect.stringMatching(reason)
      expect(await waitUntilFinished(owned)).toMatchObject({ status: 'failed', error })
      expect(await check('lost')).toMatchObject({ available: false, reason: 'active-state' })
      expect((await call('DELETE', owned)).body.error).toBe('still-up')
    }
    await expectFailure(/^The state of this deployment is missing/)
    await writeFile(path, older)
    await expectFailure(/^The state is older/)
    await writeFile(path, own)
    expect((await call('POST', owned, '/destroy')).status).toBe(202)
    expect(await waitUntilFinished(owned)).toMatchObject({ status: 'destroyed' })
    expect((await readState(owned)).resources).toEqual([])
  })

  test('a failed destroy accepts a destroy only, then it can be installed again and changed', async () => {
    const owned = await createOwned('stubborn')
    expect(await waitUntilFinished(owned)).toMatchObject({ status: 'ready' })
    module.set('fail-destroy', 'stubborn.pool.test')
    expect((await call('POST', owned, '/destroy')).status).toBe(202)
    expect(await waitUntilFinished(owned)).toMatchObject({ status: 'failed' })
    expect(await check('stubborn')).toMatchObject({ available: false, reason: 'active-state' })
    for (const tail of ['/apply', '/plan']) {
      expect((await call('POST', owned, tail)).body.error).toBe('destroy-incomplete')
    }
    expect((await call('DELETE', owned)).body.error).toBe('still-up')
    module.clear('fail-destroy', 'stubborn.pool.test')
    expect((await call('POST', owned, '/destroy')).status).toBe(202)
    expect(await waitUntilFinished(owned)).toMatchObject({ status: 'destroyed' })
    expect((await call('POST', owned, '/apply')).status).toBe(202)
    const end = await waitUntilFinished(owned)
    expect(end).toMatchObject({ status: 'ready' })
    await until('its name resolves again', async () => {
      const addresses = await resolve('stubborn')
      return Array.isArray(addresses) && addresses[0] === end.result?.loadBalancerIP
    })

    const planned = await call('POST', owned, '/plan', { region: 'hel1' })
    expect([planned.status, planned.body.text]).toEqual([200, expect.stringContaining('"hel1"')])
    expect(await read(owned)).toMatchObject({ region: 'fsn1' })
    expect((await call('POST', owned, '/apply', { sovereignSubdomain: 'other' })).body).toMatchObject({
      error: 'invalid-deployment',
      field: 'sovereignSubdomain',
    })
    expect((await call('POST', owned, '/apply', { region: 'hel1' })).status).toBe(202)
    expect(await waitUntilFinished(owned)).toMatchObject({ status: 'ready', region: 'hel1' })
    const state = JSON.stringify((await readState(owned)).resources)
    expect([state.includes('"hel1"'), state.includes('"fsn1"')]).toEqual([true, false])
  })

  describe('a destroy whose process is killed', () => {
    const hasLetGo = async (name: string) =>
      (await database.sql`select from lineages where subdomain = ${name} and not has_infrastructure`).length > 0
    const isReleased = async (name: string) =>
      (await database.sql`select from pool_allocations where subdomain = ${name} and state = 'active'`).length === 0
    const release = async () => {}

    type Stage = readonly [
      stage: string,
      /** With credentials, which only the killed process had. */
      end: 'destroyed' | 'failed',
      reach: (owned: Owned, name: string) => Promise<() => Promise<void>>,
    ]
    const stages: readonly Stage[] = [
      ['while Terraform destroys', 'failed', async () => release],
      [
        'after Terraform, before the end of its infrastructure is recorded',
        'failed',
        async (owned, name) => {
          const { release: unlock } = await lockRow(database.sql, { poolDomain: 'pool.test', subdomain: name })
          module.clear('hold-destroy', `${name}.pool.test`)
          await until('Terraform has ended', () => isStored(owned, 'Destroy complete!'))
          return unlock
        },
      ],
      [
        'after its infrastructure is gone, while its name is released',
        'destroyed',
        async (owned, name) => {
          const { release: unlock } = await lockDeployment(database.sql, owned.id)
          const { release: unlockName } = await lockRow(database.sql, { poolDomain: 'pool.test', subdomain: name })
          module.clear('hold-destroy', `${name}.pool.test`)
          await until('Terraform has ended', () => isStoredOrWaiting(owned))
          await unlock()
          await unlockName()
          await until('the end is recorded', () => hasLetGo(name))
          return release
        },
      ],
      [
        'after its name was released, before its end',
        'destroyed',
        async (_owned, name) => {
          module.clear('hold-destroy', `${name}.pool.test`)
          await until('its name is released', () => isReleased(name))
          return release
        },
      ],
    ]
    /**
     * The log cannot be stored while the row of the deployment is locked; then the state shows that Terraform ended. While
     * Terraform writes the file, it is not JSON.
     */
    const isStoredOrWaiting = async (owned: Owned) => {
      const state = await readState(owned).catch(() => null)
      return state?.resources.length === 0
    }

    // Every other stage every day; CI runs all.
    test.each(isProof ? stages : stages.filter((_, index) => index % 2 === 0))(
      '%s',
      async (stage, withCredentials, reach) => {
        const suffix = stages.findIndex(([name]) => name === stage)
        const deployments = await Promise.all(
          [true, false].map(async hasKeys => {
            const name = `killed-${suffix}-${hasKeys ? 'with' : 'without'}-keys`
            const owned = await createOwned(name, hasKeys ? storageSection(keys) : {})
            expect(await waitUntilFinished(owned)).toMatchObject({ status: 'ready' })
            module.set('hold-destroy', `${name}.pool.test`)
            expect((await call('POST', owned, '/destroy', hasKeys ? storageSection(keys) : {})).status).toBe(202)
            await until('the destroy is in progress', () => isStored(owned, 'holding the destroy'))
            return { name, owned, hasKeys, unlock: await reach(owned, name) }
          }),
        )
        await service.process.kill()
        for (const { unlock } of deployments) await unlock()
        for (const { name } of deployments) module.clear('hold-destroy', `${name}.pool.test`)
        await database.advance(LEASE_MS)
        await start()
        for (const { name, owned, hasKeys } of deployments) {
          const end = await waitUntilFinished(owned)
          expect(end.status).toBe(hasKeys && end.status === 'failed' ? withCredentials : 'destroyed')
          if (end.status === 'failed') {
            expect(end.error).toContain('Destroy the deployment again.')
            expect((await call('POST', owned, '/apply', storageSection(keys))).body.error).toBe('destroy-incomplete')
            expect((await call('POST', owned, '/destroy')).body.error).toBe('invalid-deployment')
            expect((await call('POST', owned, '/destroy', storageSection(keys))).status).toBe(202)
            expect(await waitUntilFinished(owned)).toMatchObject({ status: 'destroyed' })
          }
          expect((await readState(owned)).resources).toEqual([])
          expect(await isReleased(name)).toBe(true)
          expect((await call('DELETE', owned)).status).toBe(204)
        }
      },
    )
  })
})
