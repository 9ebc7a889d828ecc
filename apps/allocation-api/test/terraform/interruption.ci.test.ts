import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Deployment } from '@pool/contract'
import { startNode } from '@pool/dev/process'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import { until } from '@pool/test-kit/poll.ts'
import { isProof } from '@pool/test-kit/proof-size.ts'
import { type Api, startApi, toApiEntry } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { createContractCall } from '../support/service.ts'
import { MOMENTS, type Moment, slowModule, startSlowCloud } from './support/slow-cloud.ts'
import { findProcesses, isTerraformMissing, killProcesses } from './support/terraform.ts'

/** How long a creation goes on after the interrupt: in a proof, longer than any process was ever waited for before. */
const IGNORED_MS = isProof ? 20_000 : 0
const STOP_LIMIT_MS = 120_000

let database: TestDatabase
let count = 0

/** The API as a process with its own cloud, in which a deployment has reached the moment. */
const startDeployment = async (moment: Moment, env: Record<string, string> = {}, hasRunner = false) => {
  const cloud = await startSlowCloud(moment)
  const folder = mkdtempSync(join(tmpdir(), 'interruption-'))
  const dataDir = join(folder, 'deployments')
  mkdirSync(join(folder, 'module'))
  writeFileSync(join(folder, 'module/main.tf'), slowModule)
  const settings = {
    TF_REATTACH_PROVIDERS: cloud.reattach,
    PDM_TERRAFORM_PASS_ENV: 'TF_REATTACH_PROVIDERS',
    // The isolation is not what these tests are about.
    PDM_TERRAFORM_ISOLATION: 'off',
    PDM_TERRAFORM_MODULE: join(folder, 'module'),
    PDM_DEPLOYMENTS_DIR: dataDir,
    ...(hasRunner && { PDM_TERRAFORM_RUNNER: join(folder, 'socket') }),
    ...env,
  }
  const startRunner = async () => {
    const runner = startNode({ entry: toApiEntry('terraform-runner'), env: settings })
    await runner.ready
    return runner
  }
  const runner = hasRunner ? await startRunner() : null
  let service = await startApi(database.url, settings)
  onTestFinished(async () => {
    cloud.release()
    await killProcesses(folder)
    cloud.stop()
    rmSync(folder, { recursive: true, force: true })
  })
  count += 1
  const name = `interrupted-${count}`
  const { body, text, status } = await createContractCall(service.url)(
    'POST',
    '/api/v1/deployments',
    deploymentRequest(name),
  )
  if (status !== 201) throw new Error(text)
  const { id, deploymentToken } = body
  const call = (method: string, tail = '', sent?: object) =>
    createContractCall(service.url)(method, `/api/v1/deployments/${id}${tail}`, sent, {
      'X-Deployment-Token': deploymentToken,
    })
  const read = async (): Promise<Deployment> => (await call('GET')).body
  const findTerraforms = () =>
    findProcesses(cloud.reattach).filter(({ args }) => /^\S*(?:terraform|tofu) (?:apply|plan|destroy) /.test(args))
  const [lineage] = await database.sql<{ id: string }[]>`select lineage_id as id from deployments where id = ${id}`
  const statePath = join(dataDir, 'state', lineage?.id ?? '', 'terraform.tfstate')
  const ended = until('it ends', async () => (await read()).finishedAt !== null && read())
  const early = await Promise.race([cloud.reached, ended.catch(() => {})])
  if (early && env.PDM_DEPLOYMENT_TIMEOUT === undefined) throw new Error(early.error)
  return {
    cloud,
    call,
    read,
    findTerraforms,
    statePath,
    folder,
    runner,
    get service(): Api {
      return service
    },
    /** A creation is recorded when it starts, by a process that does not hold it up. */
    recorded: () =>
      until('it is recorded', async () => {
        const [row] = await database.sql<{ addresses: string }[]>`
          select known_state -> 'unfinished' as addresses from lineages where id = ${lineage?.id ?? ''}`
        return JSON.stringify(row?.addresses ?? '').includes(`cloud_machine.${moment.split(' ')[0]}`)
      }),
    /** The lease of a process that is gone expires in a moment. */
    expireLease: () =>
      database.sql`update deployments set run_expires_at = now() where id = ${id} and finished_at is null`,
    loseLease: () =>
      database.sql`update deployments set run_generation = run_generation + 1, operation_generation = operation_generation + 1,
        run_expires_at = now() + interval '1 hour' where id = ${id}`,
    restart: async () => {
      if (hasRunner) await startRunner()
      service = await startApi(database.url, settings)
    },
    finish: () =>
      until('finished', async () => {
        const deployment = await read()
        return deployment.finishedAt !== null && deployment
      }),
    isFree: async (): Promise<boolean> =>
      (await service.call('GET', `/api/v1/pool/pool.test/check?sub=${name}`)).body.available,
  }
}
type Started = Awaited<ReturnType<typeof startDeployment>>

interface Way {
  readonly env?: Record<string, string>
  readonly hasRunner?: boolean
  /** Interrupts the run. What it returns is awaited after the creation has ended. */
  interrupt(started: Started): Promise<(() => Promise<unknown>) | undefined>
  /** Whether Terraform gets the time to save. */
  readonly isPatient: boolean
}

const cancel = async ({ call, cloud }: Started, query: string) => {
  expect((await call('DELETE', query)).status).toBe(202)
  if (!query.includes('force')) await cloud.interrupted
  return undefined
}
const killAll = async ({ folder, cloud }: Started) => {
  await killProcesses(cloud.reattach)
  // Supervisors and wrappers.
  await killProcesses(folder)
}
const restart = async ({ restart: start, expireLease, findTerraforms }: Started) => {
  await until('nothing runs', () => findTerraforms().length === 0)
  await start()
  await expireLease()
}

const ways: Readonly<Record<string, Way>> = {
  'a cancel': { isPatient: true, interrupt: started => cancel(started, '?cancel=true') },
  'two cancels': {
    isPatient: true,
    interrupt: async started => {
      await cancel(started, '?cancel=true')
      return cancel(started, '?cancel=true')
    },
  },
  'a DELETE': { isPatient: true, interrupt: started => cancel(started, '') },
  'the timeout of the deployment': {
    isPatient: true,
    env: { PDM_DEPLOYMENT_TIMEOUT: '15s' },
    interrupt: async ({ cloud, finish }) => {
      await Promise.race([cloud.interrupted, finish()])
      return undefined
    },
  },
  'a stop of the service': {
    isPatient: true,
    interrupt: async started => {
      const stopped = started.service.process.stop('SIGTERM', STOP_LIMIT_MS)
      await started.cloud.interrupted
      // The service answers until Terraform has ended.
      expect((await started.call('GET')).status).toBe(200)
      return async () => {
        expect(await stopped).toEqual({ code: 0, signal: null })
        await restart(started)
      }
    },
  },
  'a lost lease': {
    isPatient: true,
    interrupt: async started => {
      await started.loseLease()
      await started.cloud.interrupted
      return async () => {
        await until('nothing runs', () => started.findTerraforms().length === 0)
        await started.expireLease()
      }
    },
  },
  'a kill of the service': {
    isPatient: true,
    interrupt: async started => {
      await started.service.process.kill()
      await started.cloud.interrupted
      return () => restart(started)
    },
  },
  'a kill of the service after a cancel': {
    isPatient: true,
    interrupt: async started => {
      await cancel(started, '?cancel=true')
      await started.service.process.kill()
      return () => restart(started)
    },
  },
  'a stop of the container of Terraform': {
    isPatient: true,
    hasRunner: true,
    interrupt: async ({ runner, cloud }) => {
      const stopped = runner?.stop('SIGTERM', STOP_LIMIT_MS)
      await cloud.interrupted
      return async () => expect(await stopped).toEqual({ code: 0, signal: null })
    },
  },
  'a cancel, with a container of Terraform': {
    isPatient: true,
    hasRunner: true,
    interrupt: started => cancel(started, '?cancel=true'),
  },
  'a forced cancel, with a container of Terraform': {
    isPatient: false,
    hasRunner: true,
    interrupt: started => cancel(started, '?cancel=true&force=true'),
  },
  'a forced cancel after a cancel': {
    isPatient: false,
    interrupt: async started => {
      await cancel(started, '?cancel=true')
      return cancel(started, '?cancel=true&force=true')
    },
  },
  'an interrupt that is ignored for longer than its timeout': {
    isPatient: false,
    env: { PDM_TERRAFORM_STOP_TIMEOUT: '1s' },
    interrupt: started => cancel(started, '?cancel=true'),
  },
  'a kill of Terraform': {
    isPatient: false,
    interrupt: async ({ findTerraforms }) => {
      for (const { pid } of findTerraforms()) process.kill(pid, 'SIGKILL')
      return undefined
    },
  },
  'the end of a provider': {
    isPatient: false,
    interrupt: async ({ cloud }) => {
      cloud.stop()
      return undefined
    },
  },
  'a kill of every process': {
    isPatient: false,
    interrupt: async started => {
      await killAll(started)
      return () => restart(started)
    },
  },
  'a kill of the container of Terraform': {
    isPatient: false,
    hasRunner: true,
    interrupt: async ({ runner, findTerraforms }) => {
      await runner?.kill()
      for (const { pid } of findTerraforms()) process.kill(pid, 'SIGKILL')
      return undefined
    },
  },
}

/** One of each kind of way, and each moment. The proof has every way at every moment. */
const everyday: readonly (readonly [way: string, moment: Moment])[] = [
  ['a cancel', 'plan'],
  ['a cancel', 'first exists'],
  ['a stop of the service', 'first exists'],
  ['a lost lease', 'first is requested'],
  ['a kill of the service', 'second exists'],
  ['a cancel, with a container of Terraform', 'second is requested'],
  ['a forced cancel after a cancel', 'second exists'],
  ['a kill of Terraform', 'second exists'],
  ['the end of a provider', 'first exists'],
  ['a kill of every process', 'first is requested'],
]
const cases = isProof ? Object.keys(ways).flatMap(way => MOMENTS.map(moment => [way, moment] as const)) : everyday

describe.skipIf(isTerraformMissing)('a run that ends early', () => {
  beforeAll(async () => {
    database = await createTestDatabase({ connections: 14 })
  })
  afterAll(() => database.drop())

  /** Machines that are not in the state. */
  const findMissing = ({ cloud, statePath }: Started): string[] => {
    const state = existsSync(statePath) ? readFileSync(statePath, 'utf8') : ''
    return [...cloud.machines].flatMap(([id, name]) => (state.includes(`"${id}"`) ? [] : [name]))
  }

  test.each(cases)('%s when %s: every machine is in the state, or listed, and the name stays', async (name, moment) => {
    const way = ways[name] as Way
    const started = await startDeployment(moment, way.env, way.hasRunner)
    const { cloud, read, call, finish, findTerraforms } = started
    if (moment !== 'plan') await started.recorded()
    const end = await way.interrupt(started)
    if (way.isPatient) await sleep(IGNORED_MS)
    else await until('Terraform has ended', () => findTerraforms().length === 0)
    cloud.release()
    await end?.()
    const deployment = await finish()
    const missing = findMissing(started)
    const message = JSON.stringify({ deployment, machines: [...cloud.machines], missing })
    if (way.isPatient) expect(missing, message).toEqual([])
    for (const machine of missing)
      expect(deployment.error, message).toContain(`module.deployment.cloud_machine.${machine}`)
    if (cloud.machines.size > 0) {
      expect(await started.isFree()).toBe(false)
      expect((await call('DELETE')).body?.error).toBe('still-up')
    }
    expect((await read()).status).toBe(deployment.status)
  })

  test('after a kill: no call forgets what may exist until it is confirmed', async () => {
    const started = await startDeployment('second exists')
    const { cloud, call, finish, statePath } = started
    await started.recorded()
    await killAll(started)
    cloud.release()
    await restart(started)
    const listed = {
      status: 'failed',
      error: expect.stringMatching(
        /created module\.deployment\.cloud_machine\.second: these may exist .*unfinishedRemoved/,
      ),
    }
    expect(await finish()).toMatchObject(listed)
    expect((await call('POST', '/apply')).status).toBe(202)
    expect(await finish()).toMatchObject(listed)
    expect([...cloud.machines.values()]).toEqual(['first', 'second'])
    expect((await call('POST', '/apply', { unfinishedRemoved: 'yes' })).body).toMatchObject({
      field: 'unfinishedRemoved',
    })
    expect((await call('POST', '/destroy')).status).toBe(202)
    expect(await finish()).toMatchObject(listed)
    expect([...cloud.machines.values()]).toEqual(['second'])
    expect(await started.isFree()).toBe(false)
    expect((await call('DELETE')).body.error).toBe('still-up')
    cloud.machines.clear()
    expect((await call('POST', '/destroy', { unfinishedRemoved: true })).status).toBe(202)
    expect(await finish()).toMatchObject({ status: 'destroyed' })
    expect(await started.isFree()).toBe(true)
    expect((await call('DELETE')).status).toBe(204)
    expect(existsSync(statePath)).toBe(false)
  })
})
