import { cloudflareTest } from '@cloudflare/vitest-plugin'
import { defineConfig } from 'vitest/config'

/** Rooms whose tests need a Postgres get one of the run's own, embedded, unless PDM_TEST_DSN names another. */
const withPostgres = './packages/local-stack/src/vitest-postgres.ts'

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
          name: 'fuzz',
          root: './packages/fuzz',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'terraform-check',
          root: './packages/terraform-check',
          include: ['test/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'ceph-gateway',
          root: './packages/ceph-gateway',
          include: ['test/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'house-rules',
          root: './packages/house-rules',
          include: ['test/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'bench',
          root: './packages/bench',
          include: ['test/**/*.test.ts'],
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'soak',
          root: './packages/soak',
          // Tables of pure rules, and commands of their own processes: nothing that one file could leave to another.
          isolate: false,
          include: ['test/**/*.test.ts'],
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'local-stack',
          root: './packages/local-stack',
          include: ['test/**/*.test.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
