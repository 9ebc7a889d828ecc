import { allowImports, npm, tests } from './allow-imports.mjs'
import { layers } from './layers.mjs'

const filesOf = name => layers.find(layer => layer.name === name).files
const entries = layers.filter(layer => layer.imports === null).map(layer => layer.files)

/** Files that match an earlier layer belong to it and not to a later one. */
const layerRules = layers
  .filter(layer => layer.imports !== null)
  .flatMap(({ name, files, imports, types = [], packages }, position) => {
    const earlier = layers.slice(0, position).map(layer => layer.files)
    const rules = allowImports(name, {
      from: files,
      to: [files, ...imports.map(filesOf), ...packages],
      types: types.map(filesOf),
      comment: `The layer ${name} imports ${[...imports, ...types].join(', ') || 'no other layer'}.`,
    })
    return rules.map(rule => ({ ...rule, from: { ...rule.from, pathNot: [rule.from.pathNot, ...earlier] } }))
  })

export default {
  forbidden: [
    ...layerRules,
    ...allowImports('lease-local', {
      from: '^apps/lease-witness/local/',
      to: [
        '^apps/lease-witness/local/',
        '^apps/lease-witness/src/(log|http/domain/bearer-tokens)\\.ts$',
        npm('(esbuild|miniflare|smol-toml|zod)'),
        '^packages/dev-server/',
        '^(node:)?[a-z/_]+$',
      ],
      comment: 'The local run configures the worker for its runtime; of the worker it imports the settings only.',
    }),
    {
      name: 'no-import-of-an-entry',
      comment: 'The composition root is at the top.',
      severity: 'error',
      from: { pathNot: [...entries, tests, '^packages/perf/'] },
      to: { path: [...entries, '^apps/lease-witness/local/main\\.ts$'] },
    },
    {
      name: 'no-app-imports-another',
      comment: 'Apps meet in the contract.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'no-package-imports-tests-of-another',
      comment: 'What more than one package needs for its tests is in packages/test-kit.',
      severity: 'error',
      from: { path: '^(apps|packages)/([^/]+)/', pathNot: '^packages/perf/' },
      to: { path: '^(apps|packages)/[^/]+/test/', pathNot: '^$1/$2/test/' },
    },
    {
      name: 'worker-is-not-node',
      comment: 'The worker runs on a platform without Node.',
      severity: 'error',
      from: { path: '^apps/lease-witness/src/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    { name: 'no-cycle', severity: 'error', from: {}, to: { circular: true } },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true, pathNot: '^cloudflare:' } },
    {
      name: 'every-file-has-a-layer',
      comment: 'Put the file into a folder of packages/architecture-rules/layers.mjs.',
      severity: 'error',
      from: { path: '^apps/[^/]+/src/', pathNot: [...layers.map(layer => layer.files), tests] },
      to: {},
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: 'specify',
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
