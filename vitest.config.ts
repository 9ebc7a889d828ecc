// For a bare `vitest run`, which then runs the tests of `pnpm test`. The scripts name vitest.workspace.ts themselves.
if (!process.env.TEST_TIER) {
  process.env.TEST_TIER = 'fast'
  process.stderr.write('Runs the fast tests (*.test.ts). TEST_TIER=ci or TEST_TIER=proofs: see CONTRIBUTING.md.\n')
}
// After the tier is set, which an import at the top would precede.
const { default: config } = await import('./vitest.workspace.ts')

export default config
