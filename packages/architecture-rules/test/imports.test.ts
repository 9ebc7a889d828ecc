import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { cruise, type ICruiseResult } from 'dependency-cruiser'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import rules from '../imports.mjs'

const api = 'apps/allocation-api/src'
const witness = 'apps/lease-witness/src'

/** The one file of its room, so both breaches are in it. */
const bindings = "import './log.ts'; import { x } from './lease-object.ts'; x"

/** A tree with one breach of each rule: what stands in the file, and the rule that must name it. */
const breaches: readonly (readonly [rule: string, file: string, text: string])[] = [
  ['contract-imports-zod-only', 'packages/contract/src/names.ts', "import 'node:fs'"],
  ['rules-are-pure', `${api}/allocation/names.ts`, "import './store.ts'"],
  ['rules-are-pure', `${api}/convergence/plan.ts`, "import 'node:timers'"],
  ['ports-name-rules', `${api}/dns/provider.ts`, "import '../http/pool.ts'"],
  ['ports-name-rules-types', `${api}/dns/start.ts`, "import { x } from '../allocation/store.ts'; x"],
  ['verbs-know-no-adapter-types', `${api}/allocation/reserve.ts`, "import { x } from './store.ts'; x"],
  ['verbs-know-no-adapter', `${api}/allocation/commit.ts`, "import '../http/pool.ts'"],
  ['verbs-know-no-adapter', `${api}/deployments/runs.ts`, "import './terraform/process-group.ts'"],
  ['rules-are-pure', `${api}/deployments/order.ts`, "import './store.ts'"],
  ['ports-name-rules', `${api}/deployments/infrastructure.ts`, "import './terraform/process-group.ts'"],
  ['sql-adapts-one-library', `${api}/deployments/line-store.ts`, "import './run.ts'"],
  ['sql-adapts-one-library', `${api}/allocation/reader.ts`, "import '../http/problem.ts'"],
  ['local-dns-adapts', `${api}/dns/local/message.ts`, "import '../../convergence/zone-store.ts'"],
  ['remote-dns-adapts', `${api}/dns/exchange.ts`, "import '../convergence/zone-store.ts'"],
  ['credential-checks-adapt', `${api}/credentials/https-get.ts`, "import '../http/problem.ts'"],
  ['credential-checks-adapt', `${api}/object-storage/s3.ts`, "import '../deployments/infrastructure.ts'"],
  ['dns-server-and-table-are-strangers', `${api}/dns/local/server.ts`, "import './zone-table.ts'"],
  ['rules-are-pure', `${api}/deployments/terraform/mask.ts`, "import 'node:fs'"],
  ['terraform-adapts', `${api}/deployments/terraform/terraform.ts`, "import '../../allocation/store.ts'"],
  ['edges-adapt', `${api}/observability/log.ts`, "import '../allocation/store.ts'"],
  ['edges-adapt-types', `${api}/server.ts`, "import { x } from './http/problem.ts'; x"],
  ['http-knows-no-store', `${api}/http/pool.ts`, "import type { X } from '../allocation/store.ts'; export type Y = X"],
  ['nobody-imports-main', `${api}/app.ts`, "import './main.ts'"],
  ['wiring-is-at-the-top', `${api}/convergence/converge.ts`, "import '../dns/registry.ts'"],
  ['wiring-is-at-the-top', `${api}/deployments/create.ts`, "import './assembly.ts'"],
  ['lease-rules-are-pure', `${witness}/lease.ts`, "import './mirror.ts'"],
  ['lease-rules-are-pure-types', `${witness}/news.ts`, "import { x } from './witness.ts'; x"],
  ['lease-ports-name-rules', `${witness}/witness.ts`, "import 'node:fs'"],
  ['lease-adapters-adapt', `${witness}/slots.ts`, "import './log.ts'"],
  ['lease-adapters-adapt-types', `${witness}/mirror.ts`, "import { x } from './env.ts'; export const y = x"],
  ['lease-object-decides', `${witness}/lease-object.ts`, "import './slots.ts'"],
  ['lease-object-decides-types', `${witness}/waiters.ts`, "import { x } from './witness.ts'; x"],
  ['lease-http-knows-the-port', `${witness}/http/lease.ts`, "import '../lease-object.ts'"],
  ['lease-http-knows-the-port-types', `${witness}/http/wait.ts`, "import { x } from '../witness.ts'; x"],
  ['lease-bindings-are-types', `${witness}/env.ts`, bindings],
  ['lease-bindings-are-types-types', `${witness}/env.ts`, bindings],
  ['lease-local-run', 'apps/lease-witness/local/workerd.ts', "import '../src/lease.ts'"],
  ['worker-is-not-node', `${witness}/tokens.ts`, "import 'node:crypto'"],
  ['no-app-imports-another', `${witness}/index.ts`, "import '../../allocation-api/src/duration.ts'"],
  ['no-cycle', `${api}/allocation/get.ts`, "import './list.ts'"],
  ['resolvable', `${api}/allocation/check.ts`, "import './nowhere.ts'"],
  ['every-file-has-a-room', `${api}/allocation/stray.ts`, "import './names.ts'"],
  ['every-imported-file-has-a-room', `${api}/allocation/renew.ts`, "import './homeless.ts'"],
]

const support: readonly (readonly [file: string, text: string])[] = [
  [`${api}/allocation/store.ts`, 'export const x = 1'],
  [`${api}/allocation/list.ts`, "import './get.ts'"],
  [`${api}/allocation/homeless.ts`, 'export {}'],
  [`${api}/http/problem.ts`, 'export {}'],
  [`${api}/convergence/zone-store.ts`, 'export {}'],
  [`${api}/dns/registry.ts`, 'export {}'],
  [`${api}/dns/local/zone-table.ts`, 'export {}'],
  [`${api}/duration.ts`, 'export {}'],
  [`${api}/deployments/assembly.ts`, 'export {}'],
  [`${api}/deployments/store.ts`, 'export {}'],
  [`${api}/deployments/run.ts`, 'export {}'],
  [`${api}/deployments/terraform/process-group.ts`, 'export {}'],
  [`${api}/main.ts`, 'export {}'],
  [`${witness}/mirror.ts`, 'export {}'],
  [`${witness}/log.ts`, 'export {}'],
]

let folder: string
const found = new Set<string>()

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'house-rules-'))
  for (const [file, text] of [...support, ...breaches.map(([, file, text]) => [file, text] as const)]) {
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await writeFile(join(folder, file), text)
  }
  const { tsConfig: _, ...options } = rules.options
  const result = await cruise(['apps', 'packages'], {
    ...options,
    baseDir: folder,
    validate: true,
    ruleSet: { forbidden: rules.forbidden },
  })
  for (const { rule, from } of (result.output as ICruiseResult).summary.violations) found.add(`${rule.name} ${from}`)
})

afterAll(() => rm(folder, { recursive: true }))

describe('the import rule', () => {
  test.each(breaches)('%s is broken by %s', (rule, file) => {
    expect([...found]).toContain(`${rule} ${file}`)
  })

  test('every rule has a breach that shows that it can fail', () => {
    const shown = new Set(breaches.map(([rule]) => rule))
    expect(rules.forbidden.map(rule => rule.name).filter(name => !shown.has(name))).toEqual([])
  })
})
