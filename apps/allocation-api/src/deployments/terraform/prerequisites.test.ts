import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { declaresOutput, findLocalModuleCalls, isTooOld, parseVersion, readModuleVersion } from './prerequisites.ts'

test.each([
  ['1.5.7', true],
  ['0.15.5', true],
  ['1.6.0', false],
  ['1.6.0-alpha20230719', false],
  ['1.10.2', false],
  ['2.0.0', false],
])('whether %s is too old: %s', (version, expected) => {
  expect(isTooOld(version)).toBe(expected)
})

test.each([
  ['{"terraform_version":"1.11.4","platform":"linux_amd64"}', '1.11.4'],
  ['{"terraform_version":"latest"}', null],
  ['{}', null],
  ['null', null],
  ['Terraform v1.11.4', null],
])('parses the version in %s', (answer, version) => {
  expect(parseVersion(answer)).toBe(version)
})

test.each([
  ['outputs.tf', 'output "b" {\n  value = 1\n}', true],
  ['a.tofu', 'locals {}\noutput  "b"{ value = 1 }', true],
  ['a.tf.json', '{"output": {"b": {"value": 1}}}', true],
  ['a.tf.json', '{"output": [{"a": {}}, {"b": {}}]}', true],
  ['a.tf', '# output "b" {}\n/* output "b" {} */', false],
  ['a.tf', 'locals {\n  text = <<-E\n    output "b" {\n  E\n}', false],
  ['a.tf', 'output "bb" {}\nvariable "b" {}', false],
  ['a.tf.json', '{"variable": {"b": {}}}', false],
])('%s with %s has the output: %s', (file, text, expected) => {
  expect(declaresOutput(new Map([[file, text]]), 'b')).toBe(expected)
})

const template = (text: string) => `$\{${text}}`
const call = (source: string) => `module "m" {\n  source = "${source}"\n}\n`

test.each<readonly [what: string, text: string, sources: readonly string[]]>([
  ['relative paths', `${call('./a')}${call('../b')}`, ['./a', '../b']],
  ['not on a line of its own', 'module "m" { source = "../a" }', ['../a']],
  ['after another argument and a block', 'module "m" {\n providers = { a = b }\n x {}\n source="../a"\n}', ['../a']],
  [
    'a registry and an absolute path',
    `${call('hashicorp/consul/aws')}${call('/opt/a')}${call('git::https://h/a')}`,
    [],
  ],
  ['a source that depends on a variable', call(`../${template('var.a')}`), []],
  [
    'the source of something else',
    'resource "r" "m" {\n source = "./a"\n}\nlocals { module = { source = "./a" } }',
    [],
  ],
  ['an argument of a nested block', 'module "m" {\n source = "x/y/z"\n a = {\n source = "./a"\n }\n}', []],
  ['comments', `# ${call('./a').replaceAll('\n', ' ')}\n// module "m" { source = "./b" }\n/* ${call('./c')} */`, []],
  ['a comment in a string', `locals { a = "# /*" }\n${call('./a')}`, ['./a']],
  ['a heredoc', `locals {\n a = <<-END\n } ${call('./b')} END2\n END\n}\n${call('./a')}`, ['./a']],
  [
    'templates with quotes and braces',
    `locals { a = "${template(`join("", [for x in [{ a = "b" }] : "${template('x.a')}"])`)}{" }\n${call('./a')}`,
    ['./a'],
  ],
  ['an escaped quote', `locals { a = "\\"{" }\n${call('./a')}`, ['./a']],
  ['an incomplete block', 'module "m" {\n source =', []],
  ['nothing', '', []],
])('%s', (_, text, sources) => {
  expect(findLocalModuleCalls(new Map([['main.tf', text]]))).toEqual(
    sources.map(source => ({ file: 'main.tf', source })),
  )
})

test.each<readonly [what: string, value: unknown, sources: readonly string[]]>([
  ['an object', { module: { m: { source: '../a' }, n: { source: 'x/y/z' } } }, ['../a']],
  ['lists of blocks', [{ module: [{ m: [{ source: '../a' }] }, { n: { source: './b' } }] }], ['../a', './b']],
  ['other blocks', { resource: { r: { m: { source: './a' } } }, module: { m: { source: 1 } } }, []],
  ['no object', null, []],
])('in the JSON syntax: %s', (_, value, sources) => {
  const files = new Map([['main.tf.json', JSON.stringify(value)]])
  expect(findLocalModuleCalls(files).map(({ source }) => source)).toEqual(sources)
})

test.each<readonly [what: string, names: readonly string[], files: readonly string[]]>([
  ['both read them', ['a.tf', 'b.tf.json'], ['a.tf', 'b.tf.json']],
  ['OpenTofu reads another file', ['a.tf', 'a.tofu', 'b.tf.json', 'b.tofu.json', 'c.tf'], ['c.tf']],
  ['other files', ['README.md', 'a.tf~', 'a.tftpl'], []],
  ['an override may replace the source', ['a.tf', 'a_override.tf'], []],
  ['another name', ['a.tf', 'no-override.tf'], ['a.tf', 'no-override.tf']],
])('files: %s', (_, names, files) => {
  const toText = (name: string) => (name.endsWith('.json') ? '{"module":{"m":{"source":"./a"}}}' : call('./a'))
  const found = findLocalModuleCalls(new Map(names.map(name => [name, toText(name)])))
  expect(found.map(({ file }) => file)).toEqual(files)
})

describe('the version of a module', () => {
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
})
