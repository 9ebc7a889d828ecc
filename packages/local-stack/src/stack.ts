import { createWriteStream } from 'node:fs'
import { type DataDir, openDataDir, operatorToken } from './data-dir.ts'
import { ensureDatabase } from './database.ts'
import type { Interrupts } from './interrupts.ts'
import { acquireLock } from './lock.ts'
import { lastLines } from './log-tail.ts'
import { layout } from './postgres/cluster.ts'
import { type Postgres, startPostgres } from './postgres.ts'
import { type Exit, type NodeProcess, startNode } from './process.ts'
import type { Settings } from './settings.ts'
import { settlePorts } from './taken-ports.ts'
import { tour } from './tour.ts'
import { until } from './wait.ts'

export interface Surroundings {
  readonly apiEntry: string
  readonly interrupts: Interrupts
  readonly say: (text: string) => void
}

const READY_WITHIN_MS = 60_000
const TAIL_LINES = 10
/** What shells report for a command ended by SIGINT. */
const HURRIED = 130

type Step = 'ready' | 'asked to stop' | { readonly fault: string }

/** Everything, from the lock to the last line; resolves with the exit code once nothing of it runs any more. */
export async function runStack(wanted: Settings, around: Surroundings): Promise<number> {
  const { stop, hurry } = around.interrupts
  const data = openDataDir(wanted.dataDir)
  const lock = acquireLock(data.lock)
  try {
    const settings = await settlePorts(wanted, lock.wasLeftBehind)
    const postgres = await startPostgres({ dataDir: data.postgres, log: data.postgresLog })
    const hurryPostgres = () => void postgres.stop('immediate')
    hurry.addEventListener('abort', hurryPostgres)
    try {
      const code = stop.aborted ? 0 : await runApi(settings, around, data, postgres)
      return hurry.aborted ? HURRIED : code
    } finally {
      await postgres.stop(hurry.aborted ? 'immediate' : 'fast')
    }
  } catch (error) {
    // A Ctrl-C also ends what is under way, such as the making of the cluster: that is no fault.
    if (stop.aborted) return 0
    throw error
  } finally {
    lock.release()
  }
}

async function runApi(
  settings: Settings,
  { apiEntry, interrupts: { stop, hurry }, say }: Surroundings,
  data: DataDir,
  postgres: Postgres,
): Promise<number> {
  const databaseUrl = await ensureDatabase(postgres.url, 'pdm')
  const ownTokens = settings.env.PDM_OPERATOR_TOKENS?.trim()
  const log = createWriteStream(data.apiLog, { flags: 'a', mode: 0o600 })
  const api = startNode({
    entry: apiEntry,
    onLine: line => log.write(`${line}\n`),
    env: {
      ...settings.env,
      PORT: String(settings.apiPort),
      PDM_DATABASE_URL: databaseUrl,
      PDM_OPERATOR_PORT: String(settings.operatorPort),
      PDM_OPERATOR_TOKENS: ownTokens || operatorToken(data.operatorToken),
      DNSPROVIDER_KIND: 'local',
      DNSPROVIDER_LOCAL_PORT: String(settings.dnsPort),
    },
  })
  hurry.addEventListener('abort', () => void api.kill())

  const ended = firstToEnd(api, postgres, data, stop)
  let isOver = false
  void ended.then(() => {
    isOver = true
  })
  const first = await Promise.race([ended, firstAnswer(api, settings.apiPort, () => isOver)])
  if (first === 'ready') {
    const { password } = layout(data.postgres)
    const token = ownTokens ? {} : { operatorToken: data.operatorToken }
    const logs = { apiLog: data.apiLog, postgresLog: data.postgresLog }
    const postgresAt = { postgresPort: postgres.port, postgresPassword: password }
    say(tour({ ...settings, dataDir: data.path, ...logs, ...postgresAt, ...token }))
  }
  const last = first === 'ready' ? await ended : first
  say(typeof last === 'object' ? `${last.fault}\n` : '\nStopping: the API finishes what it has begun …\n')
  await (hurry.aborted ? api.kill() : api.stop('SIGTERM'))
  await new Promise(resolve => log.end(resolve))
  return typeof last === 'object' ? 1 : 0
}

/** The log says it; a log level that hides the line must not hide that the API works, so it is asked as well. */
async function firstAnswer(api: NodeProcess, port: number, isOver: () => boolean): Promise<Step> {
  let isLogged = false
  void api.ready.then(
    () => {
      isLogged = true
    },
    () => {},
  )
  const isReady = async () => isOver() || isLogged || (await answers(port))
  const inTime = await until(isReady, { everyMs: 50, withinMs: READY_WITHIN_MS })
  return inTime ? 'ready' : { fault: `the API was not ready within ${READY_WITHIN_MS / 1_000} s` }
}

async function answers(port: number): Promise<boolean> {
  const signal = AbortSignal.timeout(1_000)
  const response = await fetch(`http://127.0.0.1:${port}/readyz`, { signal }).catch(() => undefined)
  await response?.body?.cancel()
  return response?.ok ?? false
}

function firstToEnd(api: NodeProcess, postgres: Postgres, data: DataDir, stop: AbortSignal): Promise<Step> {
  return new Promise(resolve => {
    const asked = () => resolve('asked to stop')
    if (stop.aborted) asked()
    stop.addEventListener('abort', asked)
    void api.exited.then(exit => resolve({ fault: died('API', exit, data.apiLog, api.lastLines().slice(-TAIL_LINES)) }))
    void postgres.exited.then(async exit => {
      const tail = await lastLines(data.postgresLog, TAIL_LINES)
      resolve({ fault: died('Postgres', exit, data.postgresLog, tail.split('\n')) })
    })
  })
}

function died(which: string, { code, signal }: Exit, log: string, tail: readonly string[]): string {
  const how = signal === null ? `exit code ${code}` : signal
  return `${which} ended by itself (${how}); the last lines of ${log}:\n${tail.map(line => `  ${line}`).join('\n')}`
}
