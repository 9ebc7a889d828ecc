import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@pool/test-kit/poll.ts'
import { createPrng } from '@pool/test-kit/prng.ts'
import { Program } from '@pool/test-kit/program.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { expect, test } from 'vitest'
import { startPostgresWitness, startWitness } from './support/witness.ts'

/** One slot for each. */
const ORDERS = proofSize(100, 20)
const OBSERVED_MS = proofSize(40_000, 20_000)
const MAX_CALM_MS = 12_000

test.each([
  { on: 'workerd', start: () => startWitness({ MAX_REQUESTS_PER_MINUTE: '0' }), of: 'two electors', processes: 1 },
  { on: 'workerd', start: () => startWitness({ MAX_REQUESTS_PER_MINUTE: '0' }), of: 'two processes', processes: 2 },
  { on: 'Postgres', start: startPostgresWitness, of: 'two electors', processes: 1 },
  { on: 'Postgres', start: startPostgresWitness, of: 'two processes', processes: 2 },
])(
  '$of of one name never lead together, in random orders of starts, ends, kills, and late and lost messages: witness on $on',
  { timeout: 600_000 },
  async ({ on, start, of, processes }) => {
    await using stack = new AsyncDisposableStack()
    const { port, token } = stack.use(await start())
    const seed = Date.now()
    const random = createPrng(seed)
    const programs: Program[] = []
    const startProgram = () => {
      const env = {
        URL: `http://127.0.0.1:${port}`,
        TOKEN: token,
        SOCKETS: `same-name-${process.pid}-${seed}`,
        // Two processes cannot have a name of `createIdentity`.
        NAME: processes === 1 ? '' : 'same',
        SEED: `${seed}/${programs.length}`,
        SLOTS: String(ORDERS),
        PER_SLOT: String(2 / processes),
      }
      const script = join(import.meta.dirname, 'support/same-name.ts')
      programs.push(stack.use(new Program({ command: process.execPath, args: [script], env })))
    }
    for (let count = 0; count < processes; count += 1) startProgram()
    const read = (event: string) => programs.flatMap(({ lines }) => lines.filter(line => line.startsWith(event)))
    await until('a leader', () => read('leads').length > 0, 120_000)
    for (const to = performance.now() + OBSERVED_MS; performance.now() < to; startProgram()) {
      await sleep(random.below(MAX_CALM_MS))
      const victim = random.pick(programs.filter(({ hasExited }) => !hasExited))
      victim.child.kill('SIGKILL')
      await victim.exited
    }
    await until('every slot has had a leader', () => new Set(read('leads')).size === ORDERS, 120_000)
    const overlaps = read('overlap')
    const unexpected = programs.flatMap(({ lines }) => lines.filter(line => !/^(leads|overlap) /.test(line)))
    reportProof(
      `${of} of one name, witness on ${on}: ${ORDERS} random orders, seed ${seed}, ${read('leads').length} tenures, ${programs.length - processes} kills, ${overlaps.length} overlaps`,
    )
    expect({ overlaps, unexpected }, `seed ${seed}`).toEqual({ overlaps: [], unexpected: [] })
  },
)
