import { cloudflareTest } from '@cloudflare/vitest-plugin'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Starts one embedded Postgres for all projects of the run, unless PDM_TEST_DSN names another server. */
const withPostgres = './packages/dev/src/vitest-postgres.ts'

/**
 * The suffix of a test file says when it runs. `*.test.ts`: in `pnpm test`, on any machine. `*.ci.test.ts`: in `pnpm test:ci`,
 * because it needs servers or programs that `.ci/run` installs, or takes long. `*.proof.test.ts`: a statistical proof, in
 * `pnpm prove`. One that only imports another file runs its tests at their full size (`proofSize`).
 */
const leftOut: Readonly<Record<string, readonly string[]>> = {
  fast: ['**/*.ci.test.ts', '**/*.proof.test.ts'],
  ci: ['**/!(*.ci).test.ts'],
  proofs: ['**/!(*.proof).test.ts'],
}

/**
 * The files of a project share worker processes and their modules: a process per file costs more than most files. A test
 * therefore restores what it changes in the process, such as environment variables. A test that takes longer than these
 * times hangs: they are many times what any test needs on a busy machine, and longer than the waits of test-kit/poll.
 */
const shared = {
  isolate: false,
  exclude: ['**/node_modules/**', ...(leftOut[process.env.TEST_TIER ?? ''] ?? ['**/*.proof.test.ts'])],
  expect: { poll: { interval: 20, timeout: 60_000 } },
  testTimeout: 180_000,
  hookTimeout: 180_000,
}

/** The slowest files first, by the durations of earlier runs; project by project, because a worker ends with its project. */
class ByProject extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
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
    sequence: { sequencer: ByProject },
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
          exclude: [...shared.exclude, 'src/{node,postgres}/**'],
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
