/** Fraction of the full size that an everyday test run uses. */
const DEFAULT_SCALE = 0.1
/** Above this, a typing error such as 10 for 10 % is more likely than a wish. */
const MAX_SCALE = 100

/**
 * The value of PROOF_SCALE: the size of the long proofs as a fraction of their full size. 0.1 if unset, 1 for the full size,
 * more than 1 for a longer search.
 */
export const proofScale = (env: NodeJS.ProcessEnv = process.env): number => {
  const text = env.PROOF_SCALE
  if (text === undefined || text === '') return DEFAULT_SCALE
  const scale = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN
  if (!(scale > 0 && scale <= MAX_SCALE)) {
    throw new Error(
      `PROOF_SCALE=${JSON.stringify(text)} is invalid. Set a fraction of the full size, more than 0 and at most ${MAX_SCALE}: 0.1 is the default, 1 the full size.`,
    )
  }
  return scale
}

/** From this fraction on, `pnpm test` runs the long proofs below as well. */
export const MIN_LONG_PROOF_SCALE = 0.25

/**
 * Test files, by a part of their path below apps/, packages/ or examples/, that take more than 5 s of CPU time at any size: they load,
 * kill or promote servers, run Terraform many times, or repeat a suite against another server. The everyday test run names
 * them and leaves them out.
 * Every guarantee that they check has faster tests as well.
 */
export const longProofs = [
  'bench/main',
  'chart-tests/test/api-server',
  'chart-tests/test/process',
  'browser/console',
  'cli/test/deployments',
  'cli/test/package',
  'cli/test/leases',
  'cli/test/screens',
  'cli/test/shells',
  'cli/test/terminal',
  'chaos/cool-off',
  'chaos/crash-recovery',
  'chaos/failover',
  'chaos/large-zone',
  'chaos/locked-rows-under-load',
  'chaos/postgres-outage',
  'chaos/provider-outage',
  'chaos/random-kills',
  'chaos/restore-drill',
  'chaos/slow-readers',
  'chaos/update-under-load',
  'chaos/upgrade',
  'client/test/deployments',
  'client/test/leases/elector-docs',
  'client/test/leases/failover',
  'client/test/leases/mutants',
  'client/test/leases/tenures',
  'client/test/package',
  'client/test/service',
  'deployments/gateway-e2e',
  'deployments/lifetimes-e2e',
  'deployments/random-tenants',
  'ci/test/leader',
  'ci/test/names',
  'examples-tests/test/controller-election',
  'examples-tests/test/examples',
  'examples-tests/test/go',
  'fuzz/drive',
  'fuzz/generate',
  'fuzz/main',
  'fuzz/tenant-leak',
  'fuzz/token-rights',
  'monitoring/alert-rules',
  'infra-tests/test/bucket-gateway',
  'integration/doctor-servers',
  'monitoring/dashboard',
  'openapi-tests/test/clients',
  'openapi-tests/test/schemathesis',
  'postgres/failover',
  'postgres/kill',
  'postgres/overlap',
  'providers/rfc2136-knot',
  'providers/rfc2136-powerdns',
  'service-build/test/image',
  'service-build/test/production-install',
  'soak/main',
  'terraform/gateway',
  'test-ceph/test/gateway',
  'testing/test/allocation-api',
  'testing/test/installed',
  'testing/test/killed',
  'testing/test/witness',
] as const

/**
 * The size at which a long proof runs: `full` scaled by PROOF_SCALE and rounded, never less than `min` (of the same unit).
 * Set `min` where fewer rounds would miss a case, for example a kill at each of four places.
 *
 * `pnpm prove` runs the test files that call `proofSize`, so call it in the test file and not in a support module.
 */
export const proofSize = (full: number, min = 1): number => Math.max(min, Math.round(full * proofScale()))

/** Prints the figures of a proof in one line, which `pnpm prove` collects into its summary. */
export const reportProof = (figures: string): void => {
  process.stdout.write(`proof: ${figures}\n`)
}
