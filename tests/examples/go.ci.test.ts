import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { Program } from '@pool/test-kit/program.ts'
import { isProof, reportProof } from '@pool/test-kit/proof-size.ts'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { startWitness, type TestWitness } from '@pool/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type CandidateSettings, EXAMPLES, runElection } from './support/election.ts'
import { startFencedResource } from './support/fenced-resource.ts'

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

  const build = async (): Promise<string> => {
    const built = mkdtempSync(join(tmpdir(), 'examples-go-'))
    onTestFinished(() => rmSync(built, { recursive: true, force: true }))
    await go('build', '-o', join(built, 'regional-controller'), '.')
    return join(built, 'regional-controller')
  }

  const createCommand = (
    command: string,
    { token }: TestWitness,
    durations: readonly [lease: string, renewDeadline: string, retryPeriod: string],
    { region, witnessUrl, resourceUrl }: CandidateSettings,
  ) => ({
    command,
    args: [
      ...['-witness', witnessUrl, '-resource', resourceUrl, '-region', region],
      ...['lease-duration', 'renew-deadline', 'retry-period'].flatMap((name, index) => [
        `-${name}`,
        durations[index] ?? '',
      ]),
    ],
    env: { WITNESS_TOKEN: token },
  })

  test('no two controllers lead at the same time', { timeout: 1_200_000 }, async () => {
    const program = await build()
    await go('vet', './...')
    await using witness = await startWitness({ env: { MAX_REQUESTS_PER_MINUTE: '0' } })
    const { tenures, overlaps, blocked, rejected } = await runElection({
      witnessUrl: witness.url,
      tenures: 100,
      marginMs: MARGIN_MS,
      createCommand: settings => createCommand(program, witness, [`${LEASE_SECONDS}s`, '2500ms', '500ms'], settings),
    })
    reportProof(
      `client-go on the lease witness: ${tenures} tenures of two candidates, ${overlaps.length} overlaps, ${blocked} blocked tenures, ${rejected} late requests rejected`,
    )
    expect(overlaps).toEqual([])
  })

  test('a controller leads 90 % of 60 s although each response is 1.5 s late', { timeout: 600_000 }, async () => {
    const program = await build()
    await using witness = await startWitness()
    await using resource = await startFencedResource()
    await using stack = new AsyncDisposableStack()
    const proxy = await startTcpProxy(Number(new URL(witness.url).port))
    stack.defer(() => proxy.close())
    proxy.delay(1_500, 0)
    for (const region of ['a', 'b']) {
      const settings = { region, witnessUrl: `http://127.0.0.1:${proxy.port}`, resourceUrl: resource.url }
      stack.use(new Program(createCommand(program, witness, ['6s', '4s', '1s'], settings)))
    }
    await until('the first controller leads', () => resource.leader !== undefined)
    const samples: boolean[] = []
    for (const from = performance.now(); performance.now() < from + 60_000; await sleep(20))
      samples.push(resource.leader !== undefined)
    const share = samples.filter(Boolean).length / samples.length
    reportProof(
      `client-go on the lease witness, each response 1.5 s late: a leader ${(100 * share).toFixed(1)} % of 60 s, ${resource.tenureCount} tenures, ${resource.overlaps.length} overlaps`,
    )
    expect(resource.overlaps).toEqual([])
    expect(share).toBeGreaterThan(0.9)
  })
})
