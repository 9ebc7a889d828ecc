import { layers, NODE, toPackagePattern, toPathPatterns } from './layers.mjs'

/** The import rules of layers.mjs and a few of the whole repository, for dependency-cruiser. */

const tests = '(\\.test\\.ts$|/test/|^tests/)'
const toPatternsOfLayer = name => toPathPatterns(layers.find(layer => layer.name === name))
const entries = layers.filter(layer => layer.imports === null).flatMap(toPathPatterns)

const layerRules = layers
  .filter(layer => layer.imports !== null)
  .flatMap(layer => {
    const { name, imports, types = [], packages } = layer
    const allowed = [...toPathPatterns(layer), ...imports.flatMap(toPatternsOfLayer), ...packages.map(toPackagePattern)]
    const typesOnly = types.flatMap(toPatternsOfLayer)
    const earlier = layers.slice(0, layers.indexOf(layer)).flatMap(toPathPatterns)
    const from = { path: toPathPatterns(layer), pathNot: [tests, ...earlier] }
    const rule = {
      name,
      comment: `Layer ${name} imports ${[...imports, ...types].join(', ') || 'no other layer'}: see layers.mjs.`,
      severity: 'error',
      from,
      to: { pathNot: [...allowed, ...typesOnly] },
    }
    if (typesOnly.length === 0) return [rule]
    const typeRule = {
      name: `${name}-types`,
      comment: `Layer ${name} imports only types from ${types.join(', ')}: see layers.mjs.`,
      severity: 'error',
      from,
      to: { path: typesOnly, pathNot: allowed, dependencyTypesNot: ['type-only'] },
    }
    return [rule, typeRule]
  })

export default {
  forbidden: [
    ...layerRules,
    {
      name: 'lease-local',
      comment: 'The local run configures workerd. Of the worker it imports only what parses its settings.',
      severity: 'error',
      from: { path: '^apps/lease-witness/local/', pathNot: tests },
      to: {
        pathNot: [
          '^apps/lease-witness/local/',
          '^apps/lease-witness/src/(log|settings|http/domain/[^/]+)\\.ts$',
          '^packages/dev/src/(?!build/)',
          '^packages/runtime/src/service/unknown-variables\\.ts$',
          '^packages/contract/src/fields\\.ts$',
          ...['esbuild', 'miniflare', 'smol-toml', 'zod', NODE].map(toPackagePattern),
        ],
      },
    },
    {
      name: 'no-import-of-an-entry',
      comment:
        'A composition root is imported by tests only, by the wrapper of the worker for tests, and for the names of variables.',
      severity: 'error',
      from: {
        pathNot: [...entries, tests, '^packages/perf/', '^packages/testing/src/(worker/|host/product-variables)'],
      },
      to: { path: [...entries, '^apps/lease-witness/local/main\\.ts$'] },
    },
    {
      name: 'no-app-imports-another',
      comment: 'Apps share code through packages.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    {
      name: 'no-package-imports-tests-of-another',
      comment: 'What the tests of two packages need is in packages/test-kit.',
      severity: 'error',
      from: { path: '^(apps|packages|tests)/([^/]+)/' },
      to: { path: ['^(apps|packages)/[^/]+/test/', '^tests/'], pathNot: '^$1/$2/' },
    },
    {
      name: 'worker-is-not-node',
      comment: 'The worker runs on a platform without the modules of Node.',
      severity: 'error',
      from: {
        path: '^apps/lease-witness/src/',
        pathNot: ['\\.test\\.ts$', '^apps/lease-witness/src/(node|postgres)/'],
      },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'client-is-not-node',
      comment: 'The client runs on Workers and in browsers. It has no dependency but zod; the contract is bundled in.',
      severity: 'error',
      from: { path: '^packages/client/src/', pathNot: ['\\.test\\.ts$'] },
      to: { pathNot: ['^packages/(?:client|contract)/src/', toPackagePattern('zod')] },
    },
    { name: 'no-cycle', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-folder-cycle',
      comment: 'Two folders that import each other are one module: merge them, or move the part that both use.',
      severity: 'error',
      scope: 'folder',
      from: { path: '^apps/[^/]+/src/' },
      to: { circular: true },
    },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true, pathNot: '^cloudflare:' } },
    {
      name: 'every-file-has-a-layer',
      comment: 'Move the file into a folder that layers.mjs lists, or list its folder there.',
      severity: 'error',
      from: { path: '^apps/[^/]+/src/', pathNot: [...layers.flatMap(toPathPatterns), tests] },
      to: {},
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(apps|packages)/[^/]+/dist' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
