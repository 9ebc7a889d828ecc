import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readModuleVersion } from './module-version.ts'

let parent: string
let module: string

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'module-version-'))
  module = join(parent, 'cluster')
  await mkdir(join(module, 'templates'), { recursive: true })
  await writeFile(join(module, 'main.tf'), 'resource {}')
  await writeFile(join(module, 'templates', 'a.tftpl'), 'text')
})
afterEach(() => rm(parent, { recursive: true }))

test('it has the name of the directory and a hash', async () => {
  expect(await readModuleVersion(module)).toMatch(/^cluster@sha256:[0-9a-f]{12}$/)
})

test.each<[what: string, change: () => Promise<unknown>]>([
  ['the content of a file', () => writeFile(join(module, 'main.tf'), 'resource { }')],
  ['a file in a directory', () => writeFile(join(module, 'templates', 'a.tftpl'), 'other')],
  ['the name of a file', () => rename(join(module, 'main.tf'), join(module, 'cluster.tf'))],
  ['a new file', () => writeFile(join(module, 'new.tf'), '')],
])('%s changes it', async (_, change) => {
  const before = await readModuleVersion(module)
  await change()
  expect(await readModuleVersion(module)).not.toBe(before)
})

test('what tools write into the directory does not change it, and links count as their targets', async () => {
  const before = await readModuleVersion(module)
  await mkdir(join(module, '.terraform'))
  await writeFile(join(module, '.terraform', 'provider'), 'binary')
  await symlink(join(parent, 'nowhere'), join(module, 'dangling.tf'))
  expect(await readModuleVersion(module)).toBe(before)
  await rename(join(module, 'main.tf'), join(parent, 'main.tf'))
  await symlink(join(parent, 'main.tf'), join(module, 'main.tf'))
  expect(await readModuleVersion(module)).toBe(before)
})
