import { resolve } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { type Command, Program } from '@pool/test-kit/program.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { type FencedResource, type Leader, type Overlap, startFencedResource } from './fenced-resource.ts'

export const EXAMPLES = resolve(import.meta.dirname, '../../../examples')

/** Runs a TypeScript example with this version of Node. */
export const runTypeScript = (entry: string, env: NodeJS.ProcessEnv, ...args: readonly string[]): Command => ({
  command: process.execPath,
  args: [resolve(EXAMPLES, entry), ...args],
  env,
})

export interface CandidateSettings {
  readonly region: string
  /** The candidate's own way to the witness. */
  readonly witnessUrl: string
  readonly resourceUrl: string
}

/** What ends the tenure of a leader. */
const faults = ['stop', 'kill', 'stop', 'partition', 'stop', 'freeze', 'stop', 'stop'] as const

export interface ElectionFigures {
  readonly tenures: number
  /** Leaders that started while another one, which ran, had not stood down. */
  readonly overlaps: readonly Overlap[]
  /** Overlaps with a leader that this machine delayed by more than half of its margin; a blocked tenure counts as ended. */
  readonly blocked: number
  /** Requests of late leaders, which the resource rejected. */
  readonly rejected: number
}

export interface ElectionOptions {
  readonly witnessUrl: string
  readonly tenures: number
  /** The time from the end of a leader's context to the expiry of its lease. */
  readonly marginMs: number
  readonly createCommand: (settings: CandidateSettings) => Command
}

interface Candidate {
  readonly region: string
  readonly proxy: TcpProxy
  readonly program: Program
}

/** Runs two candidates and ends their tenures in different ways, until there were as many tenures as requested. */
export const runElection = async (options: ElectionOptions): Promise<ElectionFigures> => {
  await using resource = await startFencedResource()
  await using stack = new AsyncDisposableStack()
  const candidates: Candidate[] = []
  const start = async () => {
    const proxy = await startTcpProxy(Number(new URL(options.witnessUrl).port))
    stack.defer(() => proxy.close())
    const region = `region-${candidates.length + 1}`
    const settings = { region, witnessUrl: `http://127.0.0.1:${proxy.port}`, resourceUrl: resource.url }
    candidates.push({ region, proxy, program: stack.use(new Program(options.createCommand(settings))) })
  }
  await start()
  await start()
  for (let round = 0; resource.tenureCount < options.tenures; round += 1) {
    const leader = await untilLeader(resource, candidates, 0)
    const candidate = candidates.find(({ region }) => region === leader.region)
    if (!candidate) throw new Error(`no candidate of ${leader.region}`)
    const fault = faults[round % faults.length] ?? 'stop'
    const undo = endTenure(candidate, leader, resource, fault)
    if (fault === 'stop' || fault === 'kill') {
      const code = await candidate.program.exited
      if (fault === 'stop' && code !== 0) throw new Error(`exit code ${code}:\n${candidate.program.output}`)
      await start()
    }
    await untilLeader(resource, candidates, leader.token + 1)
    undo()
  }
  const isBlocked = ({ earlier }: Overlap) =>
    candidates.some(({ region, program }) => region === earlier.region && wasBlocked(program, earlier, options))
  return {
    tenures: resource.tenureCount,
    overlaps: resource.overlaps.filter(overlap => !isBlocked(overlap)),
    blocked: resource.overlaps.filter(isBlocked).length,
    rejected: resource.rejectedCount,
  }
}

/** Returns a function that ends the fault. */
const endTenure = (
  { program: { child }, proxy }: Candidate,
  leader: Leader,
  resource: FencedResource,
  fault: (typeof faults)[number],
): (() => void) => {
  if (fault === 'stop') child.kill('SIGTERM')
  if (fault === 'partition') {
    proxy.freeze()
    return proxy.thaw
  }
  if (fault === 'kill' || fault === 'freeze') {
    resource.end(leader)
    child.kill(fault === 'kill' ? 'SIGKILL' : 'SIGSTOP')
  }
  return fault === 'freeze' ? () => void child.kill('SIGCONT') : () => {}
}

/** Whether the tenure ended much later than its deadline, or could not stand down, by the log of the candidate. */
const wasBlocked = (program: Program, { token }: Leader, { marginMs }: ElectionOptions): boolean =>
  program.readLog().some(line => line.token === token && (line.lateMs > marginMs / 2 || line.msg === 'not stood down'))

/** Waits for a leader with at least this token. Ends with the output of the candidates if none runs. */
const untilLeader = (resource: FencedResource, candidates: readonly Candidate[], token: number): Promise<Leader> =>
  until(`a leader with token ${token} or higher`, () => {
    const { leader } = resource
    if (leader && leader.token >= token) return leader
    if (candidates.every(({ program }) => program.hasExited)) throw new Error('every candidate has exited')
    return undefined
  }).catch(error => {
    const output = candidates.slice(-2).map(({ region, program }) => `${region}:\n${program.output.slice(-2_000)}`)
    throw new Error([error.message, ...output].join('\n'))
  })
