import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { acquireLock, type Lock } from '@pool/dev/lock'
import { until } from './poll.ts'

const client = fileURLToPath(new URL('../../client', import.meta.url))
const lockFile = join(client, 'node_modules', '.pack.lock')
/** A command that needs longer is not slow but stuck. */
const STUCK_MS = 240_000

const tryLock = (): Lock | false => {
  try {
    return acquireLock(lockFile)
  } catch {
    return false
  }
}

/** Builds `@pool/client` and packs it into this folder. Returns the archive. A build of another test cannot come in between. */
export const packClient = async (folder: string): Promise<string> => {
  const lock = await until('no other test packs the client', tryLock, 4 * STUCK_MS)
  try {
    const run = (args: readonly string[]) =>
      promisify(execFile)('npx', ['-y', 'pnpm@12', ...args], { cwd: client, timeout: STUCK_MS })
    await run(['build'])
    await run(['pack', '--pack-destination', folder])
  } finally {
    lock.release()
  }
  const file = (await readdir(folder)).find(name => name.startsWith('pool-client-'))
  if (file === undefined) throw new Error('pnpm pack made no file')
  return join(folder, file)
}
