import { cloudflareTest } from '@cloudflare/vitest-plugin'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Starts one embedded Postgres for all projects of the run, unless PDM_TEST_DSN names another server. */
const withPostgres = './packages/dev-server/src/vitest-postgres.ts'

/**
 * The files of a project share worker processes and their modules: a process per file costs 0.3 s of CPU time. A test
 * therefore restores what it changes in the process, such as environment variables.
 */
const shared = { isolate: false } as const

/** The test files of more than 5 s, longest first. */
const slowFiles = [
  'perf/test/soak/main',
  'deployments/two-tenants',
  'contract/pools',
  'process/races',
  'perf/test/bench/main',
  'chaos/random-interleavings',
  'chaos/model',
  'terraform/destroy',
  'terraform/locks',
  'chaos/postgres-outage',
  'perf/test/fuzz/main',
  'dev-server/test/start',
  'process/local-run',
  'providers/rfc2136',
  'process/waiting',
  'chaos/races',
  'deployments/e2e',
  'chaos/failover',
  'process/kill',
  'integration/timeouts',
  'chaos/provider-outage',
  'chaos/crash-recovery',
  'chaos/upgrade',
  'chaos/update-under-load',
  'chaos/cool-off',
  'chaos/random-kills',
  'process/linearizability',
  'integration/list-stream',
  'chaos/slow-readers',
  'integration/zone-replacing-provider',
  'integration/provider-secrets',
  'dev-server/test/quickstart-e2e',
  'dev-server/test/postgres',
  'credentials/check',
  'terraform-tests/test/tokens',
  'terraform-tests/test/apply',
  'deployments/runner',
  'test-ceph/test/gateway',
  'terraform-tests/test/bucket-gateway',
]

/** Starts the slow files first, so that none of them runs alone at the end. */
class SlowFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = slowFiles.findIndex(name => moduleId.includes(name))
      return index < 0 ? slowFiles.length : index
    }
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b))
  }
}

/** The accepted bearer tokens of the worker under test. */
const witnessTokens = ['token-of-region-a-0123456789abcdef', 'token-of-region-b-0123456789abcdef']

export default defineConfig({
  test: {
    // For two cores: many tests wait for timeouts or for another process.
    maxWorkers: 3,
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
          globalSetup: [`../../${withPostgres}`, './test/support/template-database.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
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
          include: ['src/**/*.test.ts', 'test/worker/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        // The witness as a process with sockets: races, kills, long polls.
        test: {
          ...shared,
          name: 'lease-witness-process',
          root: './apps/lease-witness',
          include: ['local/**/*.test.ts', 'test/process/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 60_000,
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
      { test: { ...shared, name: 'openapi', root: './packages/openapi', include: ['test/**/*.test.ts'] } },
      {
        test: {
          ...shared,
          name: 'terraform-tests',
          root: './packages/terraform-tests',
          include: ['test/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          ...shared,
          name: 'test-ceph',
          root: './packages/test-ceph',
          include: ['test/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          ...shared,
          name: 'architecture-rules',
          root: './packages/architecture-rules',
          include: ['test/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          ...shared,
          name: 'database',
          root: './packages/database',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          globalSetup: `../../${withPostgres}`,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      { test: { ...shared, name: 'test-kit', root: './packages/test-kit', include: ['src/**/*.test.ts'] } },
      {
        test: {
          ...shared,
          name: 'perf',
          root: './packages/perf',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          testTimeout: 120_000,
        },
      },
      {
        test: {
          ...shared,
          name: 'dev-server',
          root: './packages/dev-server',
          include: ['test/**/*.test.ts'],
          globalSetup: './test/fixtures/template-cluster.ts',
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
