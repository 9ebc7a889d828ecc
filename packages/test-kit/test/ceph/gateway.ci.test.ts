import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { freePort, isListening } from '@pool/dev/ports'
import { ServerExitedError } from '@pool/dev/server-process'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Gateway, missingGateway, startGateway } from '../../src/ceph/gateway.ts'
import { shouldSkip } from '../../src/optional-deps.ts'

/** The running programs of the cluster in this folder, whose configuration is in their environment (proc(5)). */
const findRunningPrograms = (folder: string): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const [program = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
        const isInCluster = readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`CEPH_CONF=${folder}/`)
        return isInCluster && !program.endsWith('/sh') ? [program] : []
      } catch {
        // The process has exited, or belongs to another user.
        return []
      }
    })

// What it does with keys and certificates is tested by the checks of credentials of the API.
describe.skipIf(shouldSkip(missingGateway))('a gateway', () => {
  let gateway: Gateway
  let temporary: string

  beforeAll(async () => {
    temporary = await mkdtemp(join(tmpdir(), 'gateways-'))
    vi.stubEnv('TMPDIR', temporary)
    gateway = await startGateway({ names: ['*.storage.example'] })
  })
  afterAll(async () => {
    await gateway?.stop()
    vi.unstubAllEnvs()
    await rm(temporary, { recursive: true, force: true })
  })

  test('reports why a user cannot be added, without the secret', async () => {
    const keys = { accessKey: 'AKIAOFATENANT', secretKey: 'secret-of-a-tenant/0123456789' }
    await gateway.addUser(keys)
    const duplicate = gateway.addUser({ ...keys, secretKey: 'marked-secret' })
    await expect(duplicate).rejects.toThrow(/radosgw-admin failed .*duplicate key/s)
    await expect(duplicate).rejects.not.toThrow(/marked-secret/)
  })

  test('uses other ports if the first ones are in use; a stop removes its files and does not affect another gateway', async () => {
    const before = await readdir(temporary)
    const ports = [gateway.port, await freePort(), await freePort(), gateway.port]
    const second = await startGateway({ names: [], findPort: async () => ports.shift() ?? freePort() })
    const folder = dirname(second.caFile)
    expect(ports).toEqual([])
    expect(await readdir(temporary)).toEqual([...before, basename(folder)].sort())
    expect(findRunningPrograms(folder)).toHaveLength(3)
    await second.stop()
    expect(findRunningPrograms(folder)).toEqual([])
    expect(await readdir(temporary)).toEqual(before)
    expect([await isListening(second.port), await isListening(gateway.port)]).toEqual([false, true])
  })

  test('fails after five attempts with ports in use, and leaves no files', async () => {
    const before = await readdir(temporary)
    const findPort = vi.fn(async () => gateway.port)
    await expect(startGateway({ names: [], findPort })).rejects.toThrow(ServerExitedError)
    expect(findPort).toHaveBeenCalledTimes(5 * 2)
    expect(await readdir(temporary)).toEqual(before)
  })

  test('does not retry an error that other ports cannot fix, and leaves no files', async () => {
    const before = await readdir(temporary)
    const findPort = vi.fn(() => Promise.reject(new Error('no free port')))
    await expect(startGateway({ names: [], findPort })).rejects.toThrow('no free port')
    expect(findPort).toHaveBeenCalledTimes(1)
    expect(await readdir(temporary)).toEqual(before)
  })

  test('exits and removes its files when the process that started it is killed', async () => {
    const starter = spawn(process.execPath, [join(import.meta.dirname, 'start-gateway.ts')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const exited = once(starter, 'exit').then(() => Promise.reject(new Error('the starter exited before it was ready')))
    exited.catch(() => {})
    const [line] = await Promise.race([once(starter.stdout, 'data'), exited])
    const folder = String(line).trim()
    expect(findRunningPrograms(folder)).toHaveLength(3)
    starter.kill('SIGKILL')
    await once(starter, 'exit')
    await expect.poll(() => [findRunningPrograms(folder), existsSync(folder)]).toEqual([[], false])
  })
})
