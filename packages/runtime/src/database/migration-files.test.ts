import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { readMigrations } from './migration-files.ts'

const read = async (files: Record<string, string>) => {
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return readMigrations(pathToFileURL(`${folder}/`))
}
const oldest = (build: number | string): string => `-- Oldest build: ${build}\nselect 1;\n`

test('reads the files in order and ignores other files', async () => {
  const files = { '0002-second-step.sql': oldest(2), '0001-first.sql': oldest(1), 'README.md': '' }
  expect(await read(files)).toEqual([
    { version: 1, name: 'first', oldestBuild: 1, script: oldest(1) },
    { version: 2, name: 'second-step', oldestBuild: 2, script: oldest(2) },
  ])
})

test.each<[what: string, files: Record<string, string>, message: string]>([
  ['a gap', { '0001-a.sql': oldest(1), '0003-c.sql': oldest(1) }, '0003-c.sql: rename it to 0002-'],
  ['a number twice', { '0001-a.sql': oldest(1), '0001-b.sql': oldest(1) }, '0001-b.sql: rename it to 0002-'],
  ['no number', { 'first.sql': oldest(1) }, 'first.sql: rename it to 0001-'],
  ['a quote in the name', { "0001-it's.sql": oldest(1) }, 'rename it to 0001-'],
  ['no oldest build', { '0001-a.sql': 'select 1;' }, '0001-a.sql: add a line "-- Oldest build: N" with N from 1 to 1'],
  ['an oldest build that does not exist yet', { '0001-a.sql': oldest(2) }, 'N from 1 to 1'],
  [
    'an older build than the file before allows',
    { '0001-a.sql': oldest(1), '0002-b.sql': oldest(2), '0003-c.sql': oldest(1) },
    '0003-c.sql: add a line "-- Oldest build: N" with N from 2 to 3',
  ],
])('rejects %s', async (_, files, message) => {
  await expect(read(files)).rejects.toThrow(message)
})
