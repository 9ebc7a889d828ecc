import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listProcessTree, readMemory } from '@pool/test-kit/processes.ts'
import { type RunningService, startApi } from './environment/api.ts'
import { startFuzzWitness } from './environment/witness.ts'
import { fuzzApi } from './fuzz-api.ts'
import { fuzzWitness } from './fuzz-witness.ts'
import type { FuzzOptions } from './options.ts'
import { createMarkPattern, findLeak } from './oracle/secrets.ts'
import type { FuzzReport, ServiceFigures } from './report/report.ts'
import { FuzzStats } from './report/stats.ts'

const toMegabytes = (bytes: number): number => Math.round(bytes / 1e6)
/** The memory that a service may have at the end. */
const MAX_RESIDENT_BYTES = 1.5e9

/** Bytes that the processes have in memory; 0 where the system does not report it. */
const residentBytes = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + (readMemory(pid)?.residentBytes ?? 0), 0)

/** Part of every secret of a run: letters and digits that do not occur otherwise. */
const createMark = (seed: string): string => `Zq${Buffer.from(seed).toString('hex').slice(0, 16).padEnd(16, '7')}xK`

interface WatchedService {
  readonly service: string
  readonly running: RunningService
  /** Processes that must not end. */
  readonly pids: readonly number[]
  readonly bytesBefore: number
}

const watch = (service: string, running: RunningService): WatchedService => {
  const pids = listProcessTree(running.pid)
  // Below the API there are only commands of Terraform, which end.
  const lasting = service === 'api' ? [running.pid] : pids
  return { service, running, pids: lasting, bytesBefore: residentBytes(pids) }
}

/** Checks that no process was replaced, the memory, and that the log has no secret. Stops the service. */
const inspect = async (
  { service, running, pids, bytesBefore }: WatchedService,
  known: Parameters<typeof findLeak>[0],
  stats: FuzzStats,
): Promise<ServiceFigures> => {
  const pidsNow = listProcessTree(running.pid)
  const bytesAfter = residentBytes(pidsNow)
  if (pids.some(pid => !pidsNow.includes(pid))) stats.addViolation(service, 'one of its processes exited')
  if (bytesAfter > MAX_RESIDENT_BYTES) stats.addViolation(service, `${toMegabytes(bytesAfter)} MB in memory`)
  await running.stop()
  await running.log.close()
  let logLines = 0
  for await (const line of running.log.lines()) {
    logLines += 1
    const leak = findLeak(known, line)
    if (leak !== null) stats.addViolation(service, `${leak} in the log: ${line.slice(0, 200)}`)
  }
  return { service, residentMegabytes: [toMegabytes(bytesBefore), toMegabytes(bytesAfter)], logLines }
}

/** Starts the services, sends their shares of the requests concurrently, and inspects the services. */
export const fuzz = async (
  options: FuzzOptions,
  cleanup: AsyncDisposableStack,
  say: (line: string) => void,
): Promise<FuzzReport> => {
  const { seed, services } = options
  const folder = mkdtempSync(join(tmpdir(), 'pool-fuzz-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true }))
  const mark = createMark(seed)
  const markPattern = createMarkPattern(mark)
  const tokens = new Set<string>()
  const stats = new FuzzStats()
  const requests = Math.ceil(options.requests / services.length)
  say(`seed ${seed}: starting ${services.join(' and ')}`)
  const [witness, api] = await Promise.all([
    services.includes('witness') ? startFuzzWitness(folder, mark, cleanup) : null,
    services.includes('api') ? startApi(folder, mark, cleanup) : null,
  ])
  const watched = [...(api ? [watch('api', api)] : []), ...(witness ? [watch('witness', witness)] : [])]

  const started = performance.now()
  say(`${options.requests} requests`)
  await Promise.all([
    api && fuzzApi({ environment: api, requests, seed, mark, markPattern, tokens, stats, say }),
    witness && fuzzWitness({ environment: witness, requests, seed, markPattern, stats }),
  ])
  const seconds = (performance.now() - started) / 1_000
  const known = { mark: markPattern, isToken: (uuid: string) => tokens.has(uuid) }
  const figures = await Promise.all(watched.map(service => inspect(service, known, stats)))
  return { options, seconds, rows: stats.rows, violations: stats.violations, figures }
}
