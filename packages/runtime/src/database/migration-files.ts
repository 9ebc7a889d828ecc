import { readdir, readFile } from 'node:fs/promises'

/** One step of a schema. A build is identified by the version of its newest migration. */
export interface Migration {
  readonly version: number
  readonly name: string
  /** The oldest build that can run on the result. */
  readonly oldestBuild: number
  readonly script: string
}

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/
const OLDEST_BUILD = /^-- Oldest build: (\d+)$/m

/**
 * Reads the SQL files of a folder: `0001-<name>.sql` and so on without a gap, each with a line `-- Oldest build: N`. Rejects
 * if a file breaks these rules.
 */
export const readMigrations = async (folder: URL): Promise<Migration[]> => {
  const files = (await readdir(folder)).filter(file => file.endsWith('.sql')).sort()
  const migrations: Migration[] = []
  for (const [index, file] of files.entries()) {
    const version = index + 1
    const script = await readFile(new URL(file, folder), 'utf8')
    const [, digits, name] = FILE_NAME.exec(file) ?? []
    if (!name || Number(digits) !== version) {
      throw new Error(`${file}: rename it to ${String(version).padStart(4, '0')}-<name>.sql, with a-z, 0-9 and "-"`)
    }
    const oldestBuild = Number(OLDEST_BUILD.exec(script)?.[1])
    const least = migrations.at(-1)?.oldestBuild ?? 1
    if (!(oldestBuild >= least && oldestBuild <= version)) {
      throw new Error(`${file}: add a line "-- Oldest build: N" with N from ${least} to ${version}`)
    }
    migrations.push({ version, name, oldestBuild, script })
  }
  return migrations
}
