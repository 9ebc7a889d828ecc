import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { cruise, type ICruiseResult } from 'dependency-cruiser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import rules from './imports.mjs'
import { type Layer, layers } from './layers.mjs'

const api = 'apps/allocation-api/src'
const witness = 'apps/lease-witness/src'

/** A path that belongs to the layer. */
const sampleFile = ({ root, folders: [folder = ''] }: Layer, name: string): string =>
  root + (folder.endsWith('.ts') ? folder : `${folder.replace('**/', 'any/')}${name}.ts`)

const toImport = (from: string, to: string): string => {
  const path = relative(dirname(from), to)
  return `import { x } from '${path.startsWith('.') ? path : `./${path}`}'; export const y = x\n`
}

const files = new Map<string, string>()
const breaches: (readonly [rule: string, file: string])[] = []
const addBreach = (rule: string, file: string, text: string): void => {
  files.set(file, (files.get(file) ?? '') + text)
  breaches.push([rule, file])
}

// Every layer imports a composition root, and values from a layer of which it may import types.
for (const layer of layers.filter(({ imports }) => imports !== null)) {
  const file = sampleFile(layer, 'breach')
  const [entry] = layers.filter(
    ({ root, imports }) => imports === null && (root === layer.root || !root.startsWith('packages/')),
  )
  if (entry) addBreach(layer.name, file, toImport(file, sampleFile(entry, '')))
  const typesLayer = layers.find(({ name }) => name === layer.types?.[0])
  if (typesLayer) addBreach(`${layer.name}-types`, file, toImport(file, sampleFile(typesLayer, 'sample')))
}
for (const layer of layers) {
  const file = sampleFile(layer, 'sample')
  if (!files.has(file)) files.set(file, 'export const x = 1')
}

addBreach('contract', 'packages/contract/src/breach-node.ts', "import 'node:fs'")
addBreach('api-domain', `${api}/allocation/domain/breach-node.ts`, "import 'node:timers'")
addBreach('api-domain', `${api}/naming/breach-repository.ts`, "import '../allocation/repository.ts'")
addBreach(
  'api-allocation',
  `${api}/allocation/breach-http.ts`,
  "import type { X } from '../http/request.ts'; export type Y = X",
)
addBreach('api-deployments', `${api}/deployments/breach-terraform.ts`, "import './terraform/apply.ts'")
addBreach('api-http', `${api}/http/breach-package.ts`, "import '../../../../packages/runtime/src/database/client.ts'")
addBreach('lease-domain', `${witness}/lease/breach-object.ts`, "import '../object/client.ts'")
addBreach('lease-local', 'apps/lease-witness/local/breach.ts', "import '../src/lease/lease.ts'")
const outside = 'packages/runtime/src/breach.ts'
addBreach('no-import-of-an-entry', outside, toImport(outside, `${api}/main.ts`))
addBreach(
  'no-app-imports-another',
  `${witness}/http/breach-app.ts`,
  "import '../../../allocation-api/src/lib/sample.ts'",
)
addBreach(
  'no-package-imports-tests-of-another',
  'packages/runtime/test/breach.test.ts',
  "import '../../contract/test/support.ts'",
)
addBreach(
  'no-package-imports-tests-of-another',
  'packages/runtime/src/breach-tests.ts',
  "import '../../../tests/sample.ts'",
)
addBreach('no-package-imports-tests-of-another', 'tests/first/breach.ts', "import '../second/sample.ts'")
addBreach('worker-is-not-node', `${witness}/object/breach-node.ts`, "import 'node:crypto'")
addBreach('client-domain', 'packages/client/src/leases/domain/breach-timing.ts', "import '../../sample.ts'")
files.set('packages/client/src/sample.ts', 'export const x = 1')
addBreach('client-is-not-node', 'packages/client/src/breach-node.ts', "import 'node:crypto'")
addBreach('client-is-not-node', 'packages/client/src/breach-package.ts', "import 'hono'")
addBreach(
  'client-is-not-node',
  'packages/client/src/leases/breach-service.ts',
  `import '../../../../${api}/lib/sample.ts'`,
)
addBreach('no-cycle', `${api}/allocation/breach-cycle-1.ts`, "import './breach-cycle-2.ts'")
files.set(`${api}/lib/first/a.ts`, "import '../second/a.ts'")
files.set(`${api}/lib/second/b.ts`, "import '../first/b.ts'")
breaches.push(['no-folder-cycle', `${api}/lib/first`])
addBreach('resolvable', `${api}/allocation/breach-missing.ts`, "import './does-not-exist.ts'")
addBreach('every-file-has-a-layer', `${api}/no-layer/breach.ts`, "import '../lib/sample.ts'")

const targets = new Map([
  [`${api}/lib/first/b.ts`, 'export {}'],
  [`${api}/lib/second/a.ts`, 'export {}'],
  [`${api}/allocation/repository.ts`, 'export {}'],
  [`${api}/allocation/breach-cycle-2.ts`, "import './breach-cycle-1.ts'"],
  [`${api}/http/request.ts`, 'export type X = 1'],
  [`${api}/deployments/terraform/apply.ts`, 'export {}'],
  [`${witness}/object/client.ts`, 'export {}'],
  [`${witness}/lease/lease.ts`, 'export {}'],
  ['packages/runtime/src/database/client.ts', 'export {}'],
  ['packages/contract/test/support.ts', 'export {}'],
  ['tests/sample.ts', 'export {}'],
  ['tests/second/sample.ts', 'export {}'],
])

let folder: string
const violations = new Set<string>()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'import-rules-'))
  for (const [file, text] of [...targets, ...files]) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await writeFile(join(folder, file), text)
  }
  const { tsConfig: _, ...options } = rules.options
  const result = await cruise(['apps', 'packages', 'tests'], {
    ...options,
    baseDir: folder,
    validate: true,
    ruleSet: { forbidden: rules.forbidden },
  })
  for (const { rule, from } of (result.output as ICruiseResult).summary.violations) {
    violations.add(`${rule.name} ${from}`)
  }
})

afterAll(() => rm(folder, { recursive: true }))

describe('import rules', () => {
  test.each(breaches)('%s reports %s', (rule, file) => {
    expect([...violations]).toContain(`${rule} ${file}`)
  })

  test('every rule has a breach', () => {
    const covered = new Set(breaches.map(([rule]) => rule))
    expect(rules.forbidden.map(rule => rule.name).filter(name => !covered.has(name))).toEqual([])
  })
})
