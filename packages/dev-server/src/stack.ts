import { type DataDir, keptToken, openDataDir } from './data-dir.ts'
import { ensureDatabase } from './database.ts'
import { acquireLock } from './lock.ts'
import { layout } from './postgres/cluster.ts'
import { type Postgres, startPostgres } from './postgres.ts'
import { tour } from './quickstart.ts'
import { died, READY_WITHIN_MS, type RunningService, type Service, startService } from './service.ts'
import type { Settings } from './settings.ts'
import type { Interrupts } from './signals.ts'
import { lastLines } from './tail.ts'
import { settlePorts } from './taken-ports.ts'

export interface Entries {
  readonly api: string
  readonly witness: string
}

export interface Surroundings {
  readonly entries: Entries
  readonly interrupts: Interrupts
  readonly say: (text: string) => void
}

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
      const code = stop.aborted ? 0 : await runServices(settings, around, data, postgres)
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

async function runServices(
  settings: Settings,
  { entries, interrupts: { stop, hurry }, say }: Surroundings,
  data: DataDir,
  postgres: Postgres,
): Promise<number> {
  const { env } = settings
  const operatorToken = env.PDM_OPERATOR_TOKENS?.trim() ? undefined : keptToken(data.operatorToken)
  const witnessToken = env.BEARER_TOKENS_CSV?.trim() ? undefined : keptToken(data.witnessToken)
  const databaseUrl = await ensureDatabase(postgres.url, 'pdm')
  const services = [
    apiService(settings, entries.api, data, databaseUrl, operatorToken),
    witnessService(settings, entries.witness, data, witnessToken),
  ].map(service => ({ ...service, running: startService(service) }))
  const all = (end: (running: RunningService) => Promise<void>) =>
    Promise.all(services.map(({ running }) => end(running)))
  hurry.addEventListener('abort', () => void all(running => running.kill()))

  const faults = services.map(({ running }) => running.fault)
  const ended = firstToEnd(faults, postgres, data, stop)
  let isOver = false
  void ended.then(() => {
    isOver = true
  })
  const first = await Promise.race([ended, firstAnswers(services, () => isOver)])
  if (first === 'ready') {
    const { password } = layout(data.postgres)
    const postgresAt = { postgresPort: postgres.port, postgresPassword: password, postgresLog: data.postgresLog }
    const witnessAt = { witnessTokenFile: data.witnessToken, witnessLog: data.witnessLog }
    const tokens = {
      ...(operatorToken ? { operatorTokenFile: data.operatorToken } : {}),
      ...(witnessToken ? { witnessToken } : {}),
    }
    say(tour({ ...settings, dataDir: data.path, apiLog: data.apiLog, ...postgresAt, ...witnessAt, ...tokens }))
  }
  const last = first === 'ready' ? await ended : first
  say(typeof last === 'object' ? `${last.fault}\n` : '\nStopping: what has been begun is finished …\n')
  await all(running => (hurry.aborted ? running.kill() : running.stop()))
  return typeof last === 'object' ? 1 : 0
}

function apiService(
  { env, apiPort, operatorPort, dnsPort }: Settings,
  entry: string,
  data: DataDir,
  databaseUrl: string,
  operatorToken: string | undefined,
): Service {
  const { BEARER_TOKENS_CSV: _, ...ofTheApi } = env
  return {
    name: 'API',
    entry,
    log: data.apiLog,
    probe: `http://127.0.0.1:${apiPort}/readyz`,
    env: {
      ...ofTheApi,
      PORT: String(apiPort),
      PDM_DATABASE_URL: databaseUrl,
      PDM_OPERATOR_PORT: String(operatorPort),
      ...(operatorToken ? { PDM_OPERATOR_TOKENS: operatorToken } : {}),
      DNSPROVIDER_KIND: 'local',
      DNSPROVIDER_LOCAL_PORT: String(dnsPort),
      PDM_DEPLOYMENTS_DIR: env.PDM_DEPLOYMENTS_DIR?.trim() || data.deployments,
    },
  }
}

function witnessService(
  { env, witnessPort }: Settings,
  entry: string,
  data: DataDir,
  witnessToken: string | undefined,
): Service {
  return {
    name: 'Lease witness',
    entry,
    log: data.witnessLog,
    // Without a token: 401 is an answer.
    probe: `http://127.0.0.1:${witnessPort}/leases`,
    env: {
      PORT: String(witnessPort),
      DATA_DIR: data.path,
      BEARER_TOKENS_CSV: witnessToken ?? env.BEARER_TOKENS_CSV,
      LOG_LEVEL: env.LOG_LEVEL,
      HOME: env.HOME,
      TMPDIR: env.TMPDIR,
    },
  }
}

async function firstAnswers(
  services: readonly (Service & { readonly running: RunningService })[],
  isOver: () => boolean,
): Promise<Step> {
  const inTime = await Promise.all(services.map(({ running }) => running.answersWithin(isOver)))
  const late = services.filter((_, i) => !inTime[i]).map(({ name }) => name)
  if (late.length === 0) return 'ready'
  return { fault: `not ready within ${READY_WITHIN_MS / 1_000} s: ${late.join(', ')}` }
}

function firstToEnd(
  faults: readonly Promise<string>[],
  postgres: Postgres,
  data: DataDir,
  stop: AbortSignal,
): Promise<Step> {
  return new Promise(resolve => {
    const asked = () => resolve('asked to stop')
    if (stop.aborted) asked()
    stop.addEventListener('abort', asked)
    for (const fault of faults) void fault.then(text => resolve({ fault: text }))
    void postgres.exited.then(async exit => {
      const tail = await lastLines(data.postgresLog, TAIL_LINES)
      resolve({ fault: died('Postgres', exit, data.postgresLog, tail.split('\n')) })
    })
  })
}
