import { execFile } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { findBinaries } from '../src/postgres/binaries.ts'
import { canSearch, launchAsUnprivileged, type OsUser, parsePasswd } from '../src/postgres/unprivileged-user.ts'
import { tempFolder } from './fixtures/command.ts'
import { query, start } from './fixtures/server.ts'

const isRoot = process.getuid?.() === 0
const nobody: OsUser = { name: 'nobody', uid: 65_534, gid: 65_534 }

test('parsePasswd reads /etc/passwd', () => {
  const text = 'root:x:0:0:root:/root:/bin/sh\n\n# a comment\nnobody:*:-2:-2::/var/empty:/usr/bin/false\n'
  expect(parsePasswd(text)).toEqual([
    { name: 'root', uid: 0, gid: 0 },
    { name: 'nobody', uid: 4_294_967_294, gid: 4_294_967_294 },
  ])
})

test.each([
  { uid: 0, gid: 0, mode: 0o755, may: true },
  { uid: 0, gid: 0, mode: 0o700, may: false },
  { uid: 0, gid: 0, mode: 0o744, may: false },
  { uid: 0, gid: 0, mode: 0o711, may: true },
  { uid: 65_534, gid: 0, mode: 0o700, may: true },
  { uid: 65_534, gid: 0, mode: 0o077, may: false },
  { uid: 0, gid: 65_534, mode: 0o710, may: true },
  { uid: 0, gid: 65_534, mode: 0o701, may: false },
])('nobody in a directory of $uid:$gid with mode $mode: $may', ({ may, ...folder }) => {
  expect(canSearch(nobody, folder)).toBe(may)
})

describe.skipIf(!isRoot)('as root', () => {
  const capabilities = (pid: number) => /CapEff:\s*(\w+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]

  test.runIf(process.platform === 'linux')(
    'below a closed directory: unprivileged except for CAP_DAC_OVERRIDE',
    async () => {
      const closed = tempFolder()
      const dataDir = join(closed, 'project', 'data')
      const server = await start(dataDir)
      expect(await query(server.url, 'select 1')).toBe(1)
      expect(statSync(`/proc/${server.pid}`).uid).not.toBe(0)
      expect(Number.parseInt(capabilities(server.pid) ?? '', 16)).toBe(1 << 1) // CAP_DAC_OVERRIDE
      expect(statSync(closed).mode & 0o777).toBe(0o700)
      expect(statSync(closed).uid).toBe(0)
    },
  )

  test.runIf(process.platform === 'linux')(
    'with the programs below a closed directory, as in a clone in /root',
    async () => {
      const closed = tempFolder()
      cpSync(join(findBinaries().initdb, '../..'), join(closed, 'native'), { recursive: true })
      const cluster = join(closed, 'cluster')
      mkdirSync(cluster)
      const { command, user: account } = launchAsUnprivileged(join(closed, 'none'), closed, [])
      chownSync(cluster, account?.uid ?? 0, account?.gid ?? 0)
      const { file, args, options } = command(join(closed, 'native/bin/initdb'), [
        '-D',
        cluster,
        '--no-sync',
        '-A',
        'trust',
      ])
      await promisify(execFile)(file, args, { ...options, cwd: '/' })
      expect(readFileSync(join(cluster, 'PG_VERSION'), 'utf8').trim()).toBe(findBinaries().major)
    },
  )

  test.runIf(process.platform === 'linux')('below open directories: no capability', async () => {
    const open = tempFolder()
    chmodSync(open, 0o755)
    const server = await start(open)
    // The project itself may be in a closed directory.
    const launch = launchAsUnprivileged(join(open, 'cluster'), open, [])
    expect(launch.command('true', []).file).toBe('true')
    expect(statSync(`/proc/${server.pid}`).uid).toBe(statSync(join(open, 'cluster')).uid)
  })

  test('data of an unknown user, or of root, is rejected with one line', () => {
    const cluster = join(tempFolder(), 'cluster')
    mkdirSync(cluster)
    for (const uid of [0, 3_999_999]) {
      chownSync(cluster, uid, uid)
      expect(() => launchAsUnprivileged(cluster, cluster, [])).toThrow(
        `belongs to user ${uid}: Postgres does not run as root`,
      )
    }
  })

  const mayRead = [import.meta.dirname, process.execPath].every(path => isOpen(path))
  // Otherwise another user could not load the code. A test run without root covers this case anyway.
  test.skipIf(!mayRead)('another user starts its own cluster, not that of others', async () => {
    const folder = tempFolder()
    chownSync(folder, nobody.uid, nobody.gid)
    const round = (dataDir: string) =>
      promisify(execFile)(process.execPath, [join(import.meta.dirname, 'fixtures/start-postgres.ts'), dataDir], {
        uid: nobody.uid,
        gid: nobody.gid,
        cwd: '/',
      })
    for (const _ of ['first', 'second']) {
      const { stdout } = await round(folder)
      expect(JSON.parse(stdout)).toMatchObject({ uid: nobody.uid })
    }
    chownSync(join(folder, 'cluster'), 1, 1)
    await expect(round(folder)).rejects.toThrow('belongs to user 1: run as that user')
  })
})

function isOpen(path: string): boolean {
  return path === '/' || (canSearch(nobody, statSync(path)) && isOpen(join(path, '..')))
}
