import { cloudflareTest } from '@cloudflare/vitest-plugin'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { longProofs } from './packages/test-kit/src/proof-size.ts'

/** Starts one embedded Postgres for all projects of the run, unless PDM_TEST_DSN names another server. */
const withPostgres = './packages/dev-server/src/vitest-postgres.ts'

/**
 * The files of a project share worker processes and their modules: a process per file costs 0.3 s of CPU time. A test
 * therefore restores what it changes in the process, such as environment variables. A test that takes longer than these
 * times hangs: they are many times what any test needs on a busy machine, and longer than the waits of test-kit/poll.
 */
const shared = {
  isolate: false,
  expect: { poll: { interval: 20, timeout: 60_000 } },
  testTimeout: 180_000,
  hookTimeout: 180_000,
} as const

/** The test files of more than 5 s, longest first. */
const slowFiles = [
  'leases/tenures',
  'cli/test/screens',
  'testing/test/installed',
  'leases/failover',
  'chaos/locked-rows-under-load',
  'chaos/upgrade',
  'openapi-tests/test/schemathesis',
  'service-build/test/image',
  'openapi-tests/test/clients',
  'controller-election',
  'deployments/two-tenants',
  'terraform/locks',
  'chart-tests/test/api-server',
  'deployments/lifetimes-e2e',
  'contract/pools',
  'chaos/update-under-load',
  'chaos/crash-recovery',
  'deployments/e2e',
  'providers/rfc2136-knot',
  'integration/locked-rows',
  'perf/test/fuzz/main',
  'integration/transfer',
  'terraform/destroy',
  'chaos/failover',
  'postgres/failover',
  'postgres/overlap',
  'chaos/postgres-outage',
  'chaos/random-interleavings',
  'process/waiting',
  'perf/test/bench/main',
  'integration/migrations',
  'deployments/random-tenants',
  'process/kill',
  'perf/test/soak/main',
  'integration/list-stream',
  'chaos/races',
  'chaos/provider-outage',
  'deployments/secrets',
  'dev-server/test/start',
  'process/races',
  'chart-tests/test/process',
  'test-ceph/test/gateway',
  'chaos/model',
  'chaos/restore-drill',
  'process/local-run',
  'infra-tests/test/bucket-gateway',
  'deployments/gateway-e2e',
  'chaos/random-kills',
  'integration/waiting-for-database',
  'terraform/known-state',
  'integration/zone-replacing-provider',
  'process/linearizability',
  'integration/list-backpressure',
  'integration/timeouts',
  'terraform/gateway',
  'providers/rfc2136-powerdns',
  'chaos/slow-readers',
  'credentials/check',
  'terraform/plan',
  'dev-server/test/quickstart-e2e',
  'chaos/cool-off',
  'providers/rfc2136-bind',
  'infra-tests/test/try-script',
  'infra-tests/test/tokens',
  'infra-tests/test/apply',
  'terraform/apply',
  'integration/drift',
  'integration/dns-local',
  'integration/read-only-database',
  'integration/reconciler',
  'integration/deadlines',
  'deployments/domain-proof',
  'integration/zone-marker',
  'terraform/termination',
  'testing/test/witness',
  'testing/test/allocation-api',
]

/**
 * Starts the slow files first, so that none of them runs alone at the end, and the files of a project one after the other:
 * a worker process ends when the next file is of another project.
 */
class SlowFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = slowFiles.findIndex(name => moduleId.includes(name))
      return index < 0 ? slowFiles.length : index
    }
    const sorted = (await super.sort(files)).sort((a, b) => rank(a) - rank(b))
    return [...Map.groupBy(sorted, ({ project }) => project.name).values()].flat()
  }
}

/** The long proofs, relative to the folder of an app or package, if this is the everyday test run. */
const longProofsIn = (folder: string): string[] => {
  if (!process.env.SKIP_LONG_PROOFS) return []
  return longProofs.map(name => `**/${name.startsWith(`${folder}/`) ? name.slice(folder.length + 1) : name}.test.ts`)
}

/** The accepted bearer tokens of the worker under test. */
const witnessTokens = ['token-of-region-a-0123456789abcdef', 'token-of-region-b-0123456789abcdef']

export default defineConfig({
  test: {
    fsModuleCache: true,
    // For two cores: many tests wait for timeouts or for another process.
    maxWorkers: 4,
    sequence: { sequencer: SlowFilesFirst },
    projects: [
      {
        test: {
          ...shared,
          name: 'allocation-api-unit',
          root: './apps/allocation-api',
          include: ['src/**/*.test.ts'],
          globalSetup: `../../${withPostgres}`,
        },
      },
      {
        test: {
          ...shared,
          name: 'allocation-api',
          root: './apps/allocation-api',
          include: ['test/**/*.test.ts'],
          exclude: longProofsIn('allocation-api'),
          globalSetup: [`../../${withPostgres}`, './test/support/template-database.ts'],
        },
      },
      {
        // Inside workerd, with the bindings of wrangler.toml.
        plugins: [
          cloudflareTest({
            wrangler: { configPath: '../../wrangler.toml' },
            miniflare: { bindings: { BEARER_TOKENS_CSV: witnessTokens.join(','), LOG_LEVEL: 'error' } },
          }),
        ],
        test: {
          ...shared,
          name: 'lease-witness',
          root: './apps/lease-witness',
          include: ['src/**/*.test.ts', 'test/http/**/*.test.ts', 'test/worker/**/*.test.ts'],
          exclude: ['src/node/**', 'src/postgres/**'],
          setupFiles: './test/worker/support/host.ts',
        },
      },
      {
        // The witness on Node and Postgres.
        test: {
          ...shared,
          name: 'lease-witness-postgres',
          root: './apps/lease-witness',
          include: ['src/{node,postgres}/**/*.test.ts', 'test/http/**/*.test.ts', 'test/postgres/**/*.test.ts'],
          exclude: longProofsIn('lease-witness'),
          setupFiles: './test/postgres/support/host.ts',
          globalSetup: `../../${withPostgres}`,
        },
      },
      {
        // The witness as a process with sockets: races, kills, long polls.
        test: {
          ...shared,
          name: 'lease-witness-process',
          root: './apps/lease-witness',
          include: ['local/**/*.test.ts', 'test/process/**/*.test.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'contract',
          root: './packages/contract',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'client',
          root: './packages/client',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: longProofsIn('client'),
          globalSetup: `../../${withPostgres}`,
        },
      },
      {
        test: {
          ...shared,
          name: 'cli',
          root: './packages/cli',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: longProofsIn('cli'),
        },
      },
      {
        test: {
          ...shared,
          name: 'operator-console',
          root: './apps/console',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...longProofsIn('console'), '**/*.proof.test.ts'],
        },
      },
      { test: { ...shared, name: 'openapi', root: './packages/openapi', include: ['test/**/*.test.ts'] } },
      {
        test: {
          ...shared,
          name: 'openapi-tests',
          root: './packages/openapi-tests',
          include: ['test/**/*.test.ts'],
          exclude: longProofsIn('openapi-tests'),
        },
      },
      {
        test: {
          ...shared,
          name: 'infra-tests',
          root: './packages/infra-tests',
          include: ['test/**/*.test.ts'],
          exclude: longProofsIn('infra-tests'),
        },
      },
      {
        test: {
          ...shared,
          name: 'chart-tests',
          root: './packages/chart-tests',
          include: ['test/**/*.test.ts'],
          exclude: longProofsIn('chart-tests'),
          globalSetup: `../../${withPostgres}`,
        },
      },
      {
        test: {
          ...shared,
          name: 'test-ceph',
          root: './packages/test-ceph',
          include: ['test/**/*.test.ts'],
          exclude: longProofsIn('test-ceph'),
        },
      },
      {
        test: {
          ...shared,
          name: 'architecture-rules',
          root: './packages/architecture-rules',
          include: ['test/**/*.test.ts'],
        },
      },
      {
        test: {
          ...shared,
          name: 'database',
          root: './packages/database',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          globalSetup: `../../${withPostgres}`,
        },
      },
      {
        test: {
          ...shared,
          name: 'service-build',
          root: './packages/service-build',
          include: ['test/**/*.test.ts'],
          exclude: longProofsIn('service-build'),
        },
      },
      { test: { ...shared, name: 'node-service', root: './packages/node-service', include: ['src/**/*.test.ts'] } },
      { test: { ...shared, name: 'docs-tests', root: './packages/docs-tests', include: ['test/**/*.test.ts'] } },
      {
        test: {
          ...shared,
          name: 'examples-tests',
          root: './packages/examples-tests',
          include: ['test/**/*.test.ts'],
          exclude: longProofsIn('examples-tests'),
        },
      },
      {
        test: {
          ...shared,
          name: 'example-ci',
          root: './examples/ci',
          include: ['test/**/*.test.ts'],
          exclude: longProofsIn('ci'),
        },
      },
      {
        test: {
          ...shared,
          name: 'testing',
          root: './packages/testing',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: longProofsIn('testing'),
        },
      },
      { test: { ...shared, name: 'test-kit', root: './packages/test-kit', include: ['src/**/*.test.ts'] } },
      {
        test: {
          ...shared,
          name: 'perf',
          root: './packages/perf',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: longProofsIn('perf'),
        },
      },
      {
        test: {
          ...shared,
          name: 'dev-server',
          root: './packages/dev-server',
          include: ['test/**/*.test.ts'],
          globalSetup: './test/fixtures/template-cluster.ts',
        },
      },
    ],
  },
})
