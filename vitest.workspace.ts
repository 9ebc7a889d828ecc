import { cloudflareTest } from '@cloudflare/vitest-plugin'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { longProofs } from './packages/test-kit/src/proof-size.ts'

/** Starts one embedded Postgres for all projects of the run, unless PDM_TEST_DSN names another server. */
const withPostgres = './packages/dev/src/vitest-postgres.ts'

/**
 * The files of a project share worker processes and their modules: a process per file costs 0.3 s of CPU time. A test
 * therefore restores what it changes in the process, such as environment variables. A test that takes longer than these
 * times hangs: they are many times what any test needs on a busy machine, and longer than the waits of test-kit/poll.
 */
const shared = {
  isolate: false,
  // The everyday test run leaves out the long proofs.
  exclude: [
    '**/node_modules/**',
    ...(process.env.SKIP_LONG_PROOFS ? longProofs.map(name => `**/${name}.test.ts`) : []),
  ],
  expect: { poll: { interval: 20, timeout: 60_000 } },
  testTimeout: 180_000,
  hookTimeout: 180_000,
}

/** The test files of more than 5 s, longest first. */
const slowFiles = [
  'leases/tenures',
  'cli/test/screens',
  'testing/test/installed',
  'leases/failover',
  'chaos/locked-rows-under-load',
  'chaos/upgrade',
  'tests/openapi/schemathesis',
  'dev/test/build/image',
  'tests/openapi/clients',
  'controller-election',
  'deployments/two-tenants',
  'terraform/locks',
  'tests/chart/api-server',
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
  'dev/test/start',
  'process/races',
  'tests/chart/process',
  'test/ceph/gateway',
  'chaos/model',
  'chaos/restore-drill',
  'process/local-run',
  'tests/infra/bucket-gateway',
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
  'dev/test/quickstart-e2e',
  'chaos/cool-off',
  'providers/rfc2136-bind',
  'tests/infra/try-script',
  'tests/infra/tokens',
  'tests/infra/apply',
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
          include: ['apps/allocation-api/src/**/*.test.ts'],
          globalSetup: withPostgres,
        },
      },
      {
        test: {
          ...shared,
          name: 'allocation-api',
          include: ['apps/allocation-api/test/**/*.test.ts'],
          globalSetup: [withPostgres, './apps/allocation-api/test/support/template-database.ts'],
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
          setupFiles: './test/postgres/support/host.ts',
          globalSetup: `../../${withPostgres}`,
        },
      },
      {
        // The witness as a process with sockets: races, kills, long polls.
        test: {
          ...shared,
          name: 'lease-witness-process',
          include: ['apps/lease-witness/{local,test/process}/**/*.test.ts'],
        },
      },
      { test: { ...shared, name: 'console', include: ['apps/console/{src,test}/**/*.test.ts'] } },
      {
        test: {
          ...shared,
          name: 'packages',
          include: ['packages/{contract,client,cli,runtime,test-kit,testing}/{src,openapi,test}/**/*.test.ts'],
          globalSetup: withPostgres,
        },
      },
      {
        test: {
          ...shared,
          name: 'dev',
          include: ['packages/dev/test/**/*.test.ts'],
          globalSetup: './packages/dev/test/fixtures/template-cluster.ts',
        },
      },
      { test: { ...shared, name: 'perf', include: ['packages/perf/{src,test}/**/*.test.ts'] } },
      {
        test: {
          ...shared,
          name: 'tests',
          include: ['tests/**/*.test.ts', 'examples/ci/test/**/*.test.ts'],
          globalSetup: withPostgres,
        },
      },
    ],
  },
})
