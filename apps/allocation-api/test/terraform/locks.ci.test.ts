import { spawn } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev/process'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { StateLock } from '../../src/deployments/domain/types.ts'
import { createTerraform, type TerraformOptions } from '../../src/deployments/terraform/terraform.ts'
import { createTestDatabase } from '../support/database.ts'
import { startStateServer } from './support/state-server.ts'
import {
  findProcesses,
  inspect,
  isolatedInProof,
  isTerraformMissing,
  killProcesses,
  type Site,
  startApply,
  startDestroy,
  toRequest,
  useSites,
} from './support/terraform.ts'

const createTestSite = useSites(isolatedInProof)

/** Waits in the middle until the file `go` exists, in an apply and in a destroy. */
const waiting = `
resource "terraform_data" "first" { input = 1 }
resource "terraform_data" "machine" {
  input = terraform_data.first.id
  provisioner "local-exec" {
    command     = "echo waiting; until [ -e ../go ]; do sleep 0.02; done"
    working_dir = path.module
  }
  provisioner "local-exec" {
    when        = destroy
    command     = "echo waiting; until [ -e ../go ]; do sleep 0.02; done"
    working_dir = path.module
  }
}`
const release = (site: Site) => writeFileSync(join(site.folder, 'go'), '')

const startServer = async () => {
  const server = await startStateServer()
  onTestFinished(server.close)
  return server
}

const unlock = (options: TerraformOptions, id: string) => createTerraform(options).unlock(toRequest(), id)
const findHolder = (options: TerraformOptions, lock: StateLock) => createTerraform(options).findLockHolder(lock)

/** A service in the middle of an operation, and the locks that it has reported. */
const startService = (site: Site, options: TerraformOptions, operation: string, readyLine: string) => {
  const locks: (StateLock | null)[] = []
  const service = startNode({
    entry: fileURLToPath(new URL('support/run-until-killed.ts', import.meta.url)),
    env: {
      ...options.env,
      TMPDIR: site.folder,
      TEST_OPERATION: operation,
      TEST_OPTIONS: JSON.stringify({ ...options, stopTimeoutMs: 60_000 }),
    },
    isReady: line => String(line.message).includes(readyLine),
    onLine: line => {
      const { lock } = line.startsWith('{') ? JSON.parse(line) : {}
      if (lock !== undefined) locks.push(lock)
    },
  })
  return { ...service, locks }
}

/** The supervisor has the leader of the group as an argument. */
const killSupervisor = (leader: number) => killProcesses(`sh ${leader} `)

describe.skipIf(isTerraformMissing)('the lock of a run', () => {
  test.each(['local', 'http'])('is reported while it is held, and its end: backend %s', async type => {
    const server = await startServer()
    const site = createTestSite(waiting)
    const options = { ...site.options, backend: type === 'http' ? server.backend : null }
    const locks: (StateLock | null)[] = []
    const onLock = async (lock: StateLock | null) => void locks.push(lock)
    const run = startApply(options, { onLock })
    const lock = await until('it is reported', () => locks[0] ?? false)
    expect(lock.id).toEqual(type === 'http' ? server.lockId() : expect.stringMatching(/^[0-9a-f-]{36}$/))
    await until('the provisioner runs', () => run.logged('(local-exec): waiting'))
    expect(await findHolder(options, lock)).toBe('running')
    release(site)
    expect(await run.result).toMatchObject({ kind: 'applied' })
    expect(locks).toEqual([lock, null])
    expect(await findHolder(options, lock)).toBe('ended')
    expect(await unlock(options, lock.id)).toEqual({ kind: 'not-locked' })

    rmSync(join(site.folder, 'go'))
    const destroy = startDestroy(options, { onLock })
    await until('it is reported', () => locks.length === 3)
    release(site)
    expect(await destroy.result).toEqual({ kind: 'destroyed' })
    expect([locks.length, locks[3]]).toEqual([4, null])
    expect(locks[2]?.id).not.toBe(lock.id)
    expect(await inspect(options)).toMatchObject({ isEmpty: true })
  })

  test('keeps a state that is empty so far from being reported as empty', async () => {
    const server = await startServer()
    const site = createTestSite(waiting.replace('terraform_data.first.id', '1'))
    const options = { ...site.options, backend: server.backend }
    const run = startApply(options)
    await until('the provisioner runs', () => run.logged('(local-exec): waiting'))
    const locked = { kind: 'failed', reason: 'The state is locked: another run may still change it.' }
    expect(await inspect(options)).toEqual(locked)
    release(site)
    expect(await run.result).toMatchObject({ kind: 'applied' })
    expect(await inspect(options)).toMatchObject({ isEmpty: false })
  })

  test('that Terraform leaves behind when only it is killed, is lifted at once', async () => {
    const server = await startServer()
    const site = createTestSite(waiting)
    const options = { ...site.options, backend: server.backend }
    const locks: (StateLock | null)[] = []
    const run = startApply(options, { onLock: async lock => void locks.push(lock) })
    const lock = await until('it is reported', () => locks[0] ?? false)
    process.kill(-lock.processGroup, 'SIGKILL')
    expect(await run.result).toMatchObject({ kind: 'failed', reason: expect.stringContaining('SIGKILL') })
    expect([locks, server.lockId()]).toEqual([[lock, null], null])
  })

  test.each(['apply', 'destroy'])(
    'whose service and Terraform are killed during %s is known to be orphaned and lifted',
    async operation => {
      const server = await startServer()
      const site = createTestSite(waiting)
      const options = { ...site.options, backend: server.backend }
      if (operation === 'destroy') {
        site.write(waiting.replace('until [ -e ../go ]', 'until true'))
        expect(await startApply(options).result).toMatchObject({ kind: 'applied' })
        site.write(waiting)
      }
      const service = startService(site, options, operation, 'locked')
      await service.ready
      await killProcesses(site.folder)
      const [lock] = service.locks
      if (!lock) return expect.fail('the lock was not reported')
      expect([service.locks.length, server.lockId()]).toEqual([1, lock.id])
      expect(await findHolder(options, lock)).toBe('ended')
      expect(await unlock(options, 'another-id')).toEqual({ kind: 'other-lock', id: lock.id })
      expect(server.lockId()).toBe(lock.id)
      expect(await unlock(options, lock.id)).toEqual({ kind: 'unlocked' })
      expect(server.lockId()).toBe(null)
      expect(await unlock(options, lock.id)).toEqual({ kind: 'not-locked' })
      release(site)
      const next = operation === 'apply' ? startApply(options, { run: 2 }) : startDestroy(options, { run: 2 })
      expect(await next.result).toMatchObject({ kind: operation === 'apply' ? 'applied' : 'destroyed' })
    },
  )

  test.each(['Initializing', 'Plan: '])('is not left behind, or is recorded, by a kill at "%s"', async line => {
    const server = await startServer()
    const site = createTestSite(waiting)
    const options = { ...site.options, backend: server.backend }
    const service = startService(site, options, 'apply', line)
    await service.ready
    // The service alone: its supervisor ends Terraform, which releases its lock.
    await service.kill()
    await until('nothing runs', () => findProcesses(site.folder).length === 0)
    expect(server.lockId()).toBe(null)
    release(site)
    expect(await startApply(options, { run: 2 }).result).toMatchObject({ kind: 'applied' })
  })

  test('is held by a Terraform that outlives its service and its supervisor', async () => {
    const server = await startServer()
    const site = createTestSite(waiting)
    const options = { ...site.options, backend: server.backend }
    const service = startService(site, options, 'apply', '(local-exec): waiting')
    await service.ready
    await until('its lock is reported', () => service.locks.length > 0)
    const [lock] = service.locks
    if (!lock) return expect.fail('the lock was not reported')
    const groupOf = ({ args }: { args: string }) => args.includes('terraform')
    // Every ten seconds, Terraform writes a line, and without a reader that would end it.
    process.kill(-lock.processGroup, 'SIGSTOP')
    await killSupervisor(lock.processGroup)
    await service.kill()
    expect(findProcesses(site.folder).some(groupOf)).toBe(true)
    expect(await findHolder(options, lock)).toBe('running')
    await killProcesses(site.folder)
    expect(await findHolder(options, lock)).toBe('ended')
  })
})

describe.skipIf(isTerraformMissing)('a lock of another process', () => {
  test('is never lifted or reported', async () => {
    const server = await startServer()
    const site = createTestSite(waiting)
    // A command that waits for a lock ignores an interrupt.
    const options = { ...site.options, backend: server.backend, stopTimeoutMs: 1_000 }
    server.lock('of-another-process')
    const locks: (StateLock | null)[] = []
    const run = startApply(options, { onLock: async lock => void locks.push(lock) })
    await until('Terraform waits for the lock', () => server.methods.includes('LOCK'))
    // It waits for a minute, so nothing that takes long may come before.
    run.stop()
    expect(await run.result).toEqual({ kind: 'stopped' })
    expect(await unlock(options, 'recorded')).toEqual({ kind: 'other-lock', id: 'of-another-process' })
    expect([locks, server.lockId()]).toEqual([[], 'of-another-process'])
    expect(server.methods).not.toContain('UNLOCK')
    // The other process may be creating resources that the state does not show yet.
    expect(await inspect(options)).toMatchObject({ kind: 'failed', reason: expect.stringContaining('locked') })
    expect(server.lockId()).toBe('of-another-process')
  })

  test('cannot be checked through a backend that does not respond', async () => {
    const server = await startServer()
    const site = createTestSite(waiting)
    server.close()
    expect(await unlock({ ...site.options, backend: server.backend }, 'recorded')).toEqual({
      kind: 'failed',
      reason: expect.any(String),
    })
  })
})

describe.skipIf(isTerraformMissing)('the lock of the pg backend', () => {
  test('ends with its process, so nothing is reported and nothing needs to be lifted', async () => {
    const database = await createTestDatabase()
    onTestFinished(() => database.drop())
    const site = createTestSite(waiting)
    const options: TerraformOptions = {
      ...site.options,
      backend: { type: 'pg', settings: { schema_name: 'terraform_{deployment}' } },
      env: { ...site.options.env, PG_CONN_STR: `${database.url}?sslmode=disable` },
      passthrough: ['PG_CONN_STR'],
    }
    const service = startService(site, options, 'apply', '(local-exec): waiting')
    await service.ready
    await killProcesses(site.folder)
    expect(service.locks).toEqual([])
    await until('the lock is gone', async () => (await unlock(options, 'recorded')).kind === 'not-locked')
    release(site)
    expect(await startApply(options, { run: 2 }).result).toMatchObject({ kind: 'applied' })
    expect(await inspect(options)).toMatchObject({ isEmpty: false })
    expect(await startDestroy(options, { run: 3 }).result).toEqual({ kind: 'destroyed' })
    expect(await inspect(options)).toMatchObject({ isEmpty: true })
  })
})

describe('the holder of a lock', () => {
  const terraform = (site: Site) => createTerraform(site.options)
  const startGroup = () => {
    const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }

  test('has ended if its process number was given to another process, and is unknown on another machine', async () => {
    const site = createTestSite()
    const locks: StateLock[] = []
    const binary = join(site.folder, 'terraform')
    const message = '{"@message":"x","type":"change_summary"}'
    const lockFile = join(site.options.dataDir, 'state', 'acme.pool.test', '.terraform.tfstate.lock.info')
    writeFileSync(
      binary,
      `#!/bin/sh\n[ "$1" = state ] && echo '{"version":4,"serial":1,"lineage":"l","resources":[]}'\n[ "$1" = apply ] || exit 0\necho '{"ID":"x1"}' > '${lockFile}'\necho '${message}'\nuntil [ -e '${site.folder}/go' ]; do sleep 0.02; done\n`,
      { mode: 0o755 },
    )
    const run = startApply({ ...site.options, binary }, { onLock: async lock => void (lock && locks.push(lock)) })
    const lock = await until('the lock is reported', () => locks[0] ?? false)
    expect(lock.id).toBe('x1')
    expect(await terraform(site).findLockHolder(lock)).toBe('running')
    expect(await terraform(site).findLockHolder({ ...lock, host: 'another' })).toBe('unknown')
    expect(await terraform(site).findLockHolder({ ...lock, host: '' })).toBe('unknown')
    const other = startGroup().pid ?? 0
    expect(await terraform(site).findLockHolder({ ...lock, processGroup: other })).toBe('ended')
    release(site)
    await run.result
    expect(await terraform(site).findLockHolder(lock)).toBe('ended')
  })
})
