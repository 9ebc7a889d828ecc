import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listProcessTree, readMemory } from '../shared/processes.ts'
import { type Running, startApi } from './environment/api.ts'
import { startWitness } from './environment/witness.ts'
import { fuzzApi } from './fuzz-api.ts'
import { fuzzWitness } from './fuzz-witness.ts'
import type { Options } from './options.ts'
import { leakIn, markPattern } from './oracle/secrets.ts'
import type { Report, ServiceFigures } from './report/report.ts'
import { createTally, type Tally } from './report/stats.ts'

const megabytes = (bytes: number): number => Math.round(bytes / 1e6)
/** Bytes that a service may have in memory at the end, whatever it has been sent. */
const MOST_RESIDENT = 1.5e9

/** Bytes that the processes have in memory; 0 where the system does not report it. */
const residentBytes = async (pids: readonly number[]): Promise<number> => {
  const all = await Promise.all(pids.map(readMemory))
  return all.reduce((sum, memory) => sum + (memory?.residentBytes ?? 0), 0)
}

/** Part of every secret of a run. Letters and digits that no word has, so that nothing else is taken for it. */
const markOf = (seed: string): string => `Zq${Buffer.from(seed).toString('hex').slice(0, 16).padEnd(16, '7')}xK`

interface Watched {
  readonly service: string
  readonly running: Running
  readonly family: readonly number[]
  readonly before: number
}

const watch = async (service: string, running: Running): Promise<Watched> => {
  const family = await listProcessTree(running.pid)
  return { service, running, family, before: await residentBytes(family) }
}

/** Whether it is the same processes still, what they have in memory, and whether a secret is in what they logged. */
const inspect = async (
  { service, running, family, before }: Watched,
  known: Parameters<typeof leakIn>[0],
  tally: Tally,
): Promise<ServiceFigures> => {
  const now = await listProcessTree(running.pid)
  const after = await residentBytes(now)
  if (family.some(pid => !now.includes(pid))) tally.fault(service, 'a process of it has died')
  if (after > MOST_RESIDENT) tally.fault(service, `${megabytes(after)} MB in memory`)
  await running.stop()
  await running.log.close()
  let logLines = 0
  for await (const line of running.log.lines()) {
    logLines += 1
    const leak = leakIn(known, line)
    if (leak !== null) tally.fault(service, `${leak} in the log: ${line.slice(0, 200)}`)
  }
  return { service, residentMegabytes: [megabytes(before), megabytes(after)], logLines }
}

/** The whole run: the real parts are started, sent their share of requests at the same time, and looked at. */
export const fuzz = async (
  options: Options,
  cleanup: AsyncDisposableStack,
  say: (line: string) => void,
): Promise<Report> => {
  const { seed, services } = options
  const folder = mkdtempSync(join(tmpdir(), 'pool-fuzz-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const mark = markOf(seed)
  const pattern = markPattern(mark)
  const tokens = new Set<string>()
  const tally = createTally()
  const requests = Math.ceil(options.requests / services.length)
  say(`seed ${seed}: starting ${services.join(' and ')}`)
  const witness = services.includes('witness') ? await startWitness(folder, mark, cleanup) : null
  const api = services.includes('api') ? await startApi(folder, mark, cleanup) : null
  const watched = await Promise.all([
    ...(api ? [watch('api', api)] : []),
    ...(witness ? [watch('witness', witness)] : []),
  ])

  const started = performance.now()
  say(`${options.requests} requests`)
  await Promise.all([
    api && fuzzApi({ stage: api, requests, seed, mark, pattern, tokens, tally, say }),
    witness && fuzzWitness({ stage: witness, requests, seed, pattern, tally }),
  ])
  const seconds = (performance.now() - started) / 1_000
  const known = { mark: pattern, isToken: (uuid: string) => tokens.has(uuid) }
  const figures = await Promise.all(watched.map(one => inspect(one, known, tally)))
  return { options, seconds, rows: tally.rows, faults: tally.faults, figures }
}
