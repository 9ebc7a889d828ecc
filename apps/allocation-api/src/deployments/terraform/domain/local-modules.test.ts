import { expect, test } from 'vitest'
import { findLocalModuleCalls } from './local-modules.ts'

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
