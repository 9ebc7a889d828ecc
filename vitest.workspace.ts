import { cloudflareTest } from '@cloudflare/vitest-plugin'
import { defineConfig } from 'vitest/config'

/** Rooms whose tests need a Postgres get one of the run's own, embedded, unless PDM_TEST_DSN names another. */
const withPostgres = './packages/dev-server/src/vitest-postgres.ts'

/** The allow-list of the worker under test. */
const witnessTokens = ['token-of-region-a-0123456789abcdef', 'token-of-region-b-0123456789abcdef']

export default defineConfig({
  test: {
    // Two cores. A third worker saves a tenth of the time, and makes the timed waits of fault tests longer.
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'allocation-api-rules',
          root: './apps/allocation-api',
          include: ['src/**/*.test.ts'],
          globalSetup: `../../${withPostgres}`,
          // One process after another would take longer to start than its tests to run.
          isolate: false,
        },
      },
      {
        test: {
          name: 'allocation-api',
          root: './apps/allocation-api',
          include: ['test/**/*.test.ts'],
          globalSetup: `../../${withPostgres}`,
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
          name: 'lease-witness',
          root: './apps/lease-witness',
          include: ['src/**/*.test.ts', 'test/worker/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        // The witness as a process, on sockets: races, kills, waits.
        test: {
          name: 'lease-witness-process',
          root: './apps/lease-witness',
          include: ['local/**/*.test.ts', 'test/process/**/*.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'contract',
          root: './packages/contract',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          isolate: false,
        },
      },
      { test: { name: 'openapi', root: './packages/openapi', include: ['test/**/*.test.ts'] } },
      {
        test: {
          name: 'terraform-tests',
          root: './packages/terraform-tests',
          include: ['test/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'test-ceph',
          root: './packages/test-ceph',
          include: ['test/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'architecture-rules',
          root: './packages/architecture-rules',
          include: ['test/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'database',
          root: './packages/database',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          globalSetup: `../../${withPostgres}`,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      { test: { name: 'test-kit', root: './packages/test-kit', include: ['src/**/*.test.ts'] } },
      {
        test: {
          name: 'perf',
          root: './packages/perf',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'dev-server',
          root: './packages/dev-server',
          include: ['test/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
