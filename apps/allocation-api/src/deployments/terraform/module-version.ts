import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'

const HASH_CHARACTERS = 12

/** Every file of the module, by path. Names that begin with a dot belong to tools, such as `.terraform`. */
const listFiles = async (root: string, path = ''): Promise<string[]> => {
  const names = (await readdir(join(root, path))).filter(name => !name.startsWith('.')).sort()
  const lists = await Promise.all(
    names.map(async name => {
      const child = path === '' ? name : `${path}/${name}`
      // A mounted ConfigMap has symbolic links.
      const entry = await stat(join(root, child)).catch(() => null)
      if (entry?.isDirectory()) return listFiles(root, child)
      return entry?.isFile() ? [child] : []
    }),
  )
  return lists.flat()
}

/**
 * Identifies the content of a module: the name of its directory, and the beginning of the SHA-256 of its files. Modules
 * outside the directory that it calls are not part of it.
 */
export const readModuleVersion = async (moduleDir: string): Promise<string> => {
  const hash = createHash('sha256')
  for (const path of await listFiles(moduleDir)) {
    const content = await readFile(join(moduleDir, path))
    // With both lengths, so that no two sets of files give the same input.
    hash.update(`${Buffer.byteLength(path)} ${path} ${content.length} `).update(content)
  }
  return `${basename(moduleDir)}@sha256:${hash.digest('hex').slice(0, HASH_CHARACTERS)}`
}
