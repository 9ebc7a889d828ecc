import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { LocalError, UsageError } from './exit-codes.ts'

/** Bits of a mode that let the group or others read or write. */
const SHARED_BITS = 0o077

export const hasErrorCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code

const toReason = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'

/** Reads a file of the user. The error names the file and never its content. */
export const readUserFile = async (path: string, what: string): Promise<string> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) throw new UsageError(`${what} ${path} does not exist; check the path.`)
    if (hasErrorCode(error, 'EISDIR')) throw new UsageError(`${what} ${path} is a directory; name a file.`)
    throw new LocalError(`${what} ${path} cannot be read (${toReason(error)}); check its permissions.`)
  }
}

/**
 * Reads a file with a secret, or one that names commands to run. It must belong to the user, or to root, and no other user
 * may read or write it. Returns null if it does not exist.
 */
export const readPrivateFile = async (path: string, what: string): Promise<string | null> => {
  const info = await stat(path).catch((error: unknown) => {
    if (hasErrorCode(error, 'ENOENT') || hasErrorCode(error, 'ENOTDIR')) return null
    throw new LocalError(`${what} ${path} cannot be read (${toReason(error)}); check its permissions.`)
  })
  if (info === null) return null
  if (!info.isFile()) throw new UsageError(`${what} ${path} is not a file; name a regular file.`)
  const user = process.getuid?.()
  if (user !== undefined && info.uid !== user && info.uid !== 0) {
    throw new UsageError(`${what} ${path} belongs to another user; use a file of your own.`)
  }
  // Windows has no such bits.
  if (user !== undefined && (info.mode & SHARED_BITS) !== 0) {
    throw new UsageError(
      `${what} ${path} is accessible to other users; run: chmod 600 ${path} (a mounted Secret: read a token with 'cat ${path}' as its command, or copy the file)`,
    )
  }
  return readUserFile(path, what)
}

/**
 * Replaces a file that only the user can read. After a crash or a kill it has the former content or the new one. Its folder
 * is created with the same rights.
 */
export const writePrivateFile = async (path: string, content: string | Uint8Array): Promise<void> => {
  const temporary = `${path}.${process.pid}.tmp`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const file = await open(temporary, 'w', 0o600)
    try {
      // The file can exist from a process that was killed, with other rights.
      await chmod(temporary, 0o600)
      await file.writeFile(content)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw new LocalError(`${path} cannot be written (${toReason(error)}); check the folder and the free space.`)
  }
}
