import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPrng } from '@pool/test-kit/prng.ts'
import { Program } from '@pool/test-kit/program.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { startWitness } from '@pool/testing'
import { expect, test } from 'vitest'
import { createCliFolder, ENTRY, runPoolctl } from './support/cli.ts'

const ORDERS = proofSize(100, 8)
/** Each runs one order at a time. */
const LANES = 5
/** The exit code of flock if another process has the lock. */
const OVERLAP = 75

test.each(['workerd', 'postgres'] as const)(
  'the commands of two `leases elect` of one name never run together, in random orders: witness on %s',
  { timeout: 1_800_000 },
  async on => {
    await using stack = new AsyncDisposableStack()
    const witness = stack.use(await startWitness({ on, env: { MAX_REQUESTS_PER_MINUTE: '0' } }))
    const home = stack.use(createCliFolder())
    const tokenFile = join(home.folder, 'token')
    writeFileSync(tokenFile, witness.token, { mode: 0o600 })
    const seed = Date.now()
    let orders = 0
    let tenures = 0
    const overlaps: string[] = []

    const runOrder = async (context: string, dropResponses: (isDropping: boolean) => void) => {
      orders += 1
      const slot = `one-name-${orders}`
      const random = createPrng(`${seed}/${orders}`)
      const start = () => {
        const seconds = (0.1 + random.next() * 3).toFixed(1)
        const lock = ['flock', '-n', '-E', `${OVERLAP}`, join(home.folder, slot), 'sleep', seconds]
        const flags = ['--context', context, '--holder', 'backup', '--lease-duration', '6s', '--grace', '1s']
        const args = [ENTRY, 'leases', 'elect', slot, ...flags, '--', ...lock]
        return stack.use(new Program({ command: process.execPath, args, env: home.env }))
      }
      const [first, second] = [start(), await sleep(random.below(1_500)).then(start)]
      await sleep(random.below(3_000))
      const fault = random.pick(['none', 'SIGTERM', 'SIGKILL', 'lost responses'] as const)
      if (fault === 'SIGTERM' || fault === 'SIGKILL') random.pick([first, second]).child.kill(fault)
      dropResponses(fault === 'lost responses')
      await sleep(random.below(5_000))
      dropResponses(false)
      for (const program of [first, second]) {
        if ((await program.exited) === OVERLAP) overlaps.push(`${slot} after ${fault}: ${program.output}`)
        tenures += program.lines.filter(line => line.startsWith('leading ')).length
      }
    }
    const lanes = Array.from({ length: LANES }, async (_, index) => {
      const proxy = await startTcpProxy(Number(new URL(witness.url).port))
      stack.defer(() => proxy.close())
      const [name, url] = [`lane-${index}`, `http://127.0.0.1:${proxy.port}`]
      const set = ['contexts', 'set', name, '--witness', url, '--witness-token-file', tokenFile]
      return { name, set, dropResponses: proxy.dropResponses }
    })
    const prepared = await Promise.all(lanes)
    for (const { set } of prepared) expect(await runPoolctl(set, { env: home.env })).toMatchObject({ exitCode: 0 })
    await Promise.all(
      prepared.map(async ({ name, dropResponses }) => {
        while (orders < ORDERS) await runOrder(name, dropResponses)
      }),
    )
    reportProof(
      `two \`leases elect\` of one name, witness on ${on}: ${orders} random orders, seed ${seed}, ${tenures} commands, ${overlaps.length} overlaps`,
    )
    expect(overlaps).toEqual([])
    expect(tenures).toBeGreaterThan(ORDERS)
  },
)
