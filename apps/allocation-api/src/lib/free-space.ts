import { statfs } from 'node:fs/promises'

/** Bytes that an unprivileged process may still write to the file system of `directory`. */
export const readFreeBytes = async (directory: string): Promise<number> => {
  const { bavail, bsize } = await statfs(directory)
  return bavail * bsize
}
