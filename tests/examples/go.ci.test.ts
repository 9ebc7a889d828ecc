import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { isProof, reportProof } from '@pool/test-kit/proof-size.ts'
import { startWitness } from '@pool/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EXAMPLES, runElection } from './support/election.ts'

const folder = join(EXAMPLES, 'go')

/** The compiler of go.mod, or why there is none. */
const missing = ((): string | undefined => {
  const { status } = spawnSync('go', ['env', 'GOVERSION'], { cwd: folder })
  if (status !== 0) return 'examples/go: missing Go 1.25 or later (https://go.dev/doc/install)'
  const modules = spawnSync('go', ['mod', 'download'], { cwd: folder, encoding: 'utf8' })
  return modules.status === 0 ? undefined : `examples/go: go mod download failed: ${modules.stderr.split('\n')[0]}`
})()

const go = async (...args: readonly string[]): Promise<void> => {
  await promisify(execFile)('go', args, { cwd: folder, maxBuffer: 64 << 20 }).catch(({ stdout, stderr }) => {
    throw new Error(`go ${args.join(' ')}:\n${stdout}${stderr}`)
  })
}

/** Short, so that a killed leader is replaced soon; long enough for a busy machine to renew in time. */
const LEASE_SECONDS = 4
/** The lock ends the work of a tenure after two thirds of the lease. */
const MARGIN_MS = (LEASE_SECONDS * 1_000) / 3

describe.skipIf(shouldSkip(missing))('the Go controller', () => {
  test('passes its own tests, with the elector of client-go in simulated time', { timeout: 1_200_000 }, async () => {
    await go('test', './...')
  })

  // The build takes longer than everything else together.
  if (!isProof) return

  test('no two controllers lead at the same time', { timeout: 1_200_000 }, async () => {
    const built = mkdtempSync(join(tmpdir(), 'examples-go-'))
    onTestFinished(() => rmSync(built, { recursive: true, force: true }))
    const program = join(built, 'regional-controller')
    await go('vet', './...')
    await go('build', '-o', program, '.')
    await using witness = await startWitness({ env: { MAX_REQUESTS_PER_MINUTE: '0' } })
    const { tenures, overlaps, blocked, rejected } = await runElection({
      witnessUrl: witness.url,
      tenures: 100,
      marginMs: MARGIN_MS,
      createCommand: ({ region, witnessUrl, resourceUrl }) => ({
        command: program,
        args: [
          ...['-witness', witnessUrl, '-resource', resourceUrl, '-region', region],
          ...['-lease-duration', `${LEASE_SECONDS}s`, '-renew-deadline', '2500ms', '-retry-period', '500ms'],
        ],
        env: { WITNESS_TOKEN: witness.token },
      }),
    })
    reportProof(
      `client-go on the lease witness: ${tenures} tenures of two candidates, ${overlaps.length} overlaps, ${blocked} blocked tenures, ${rejected} late requests rejected`,
    )
    expect(overlaps).toEqual([])
  })
})
