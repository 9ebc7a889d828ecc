import { createSignInCode } from '@pool/runtime/service/sign-in-code'
import { updateConsole } from './build/console.ts'
import { acquireLock } from './lock.ts'
import { resolvePorts } from './ports.ts'
import { postgresPaths } from './postgres/cluster.ts'
import { lastLines } from './postgres/server.ts'
import { ensureDatabase, type Postgres, startPostgres } from './postgres.ts'
import { renderQuickstart } from './quickstart.ts'
import { formatExit, READY_TIMEOUT_MS, type RunningService, type Service, startService } from './service.ts'
import {
  type DataDir,
  findStartWarnings,
  loadOrCreateToken,
  openDataDir,
  type StartSettings,
  WITNESS_SETTINGS,
} from './settings.ts'
import type { ShutdownSignals } from './signals.ts'

export interface Entries {
  readonly api: string
  readonly witness: string
  /** The folder of the console's app; it need not exist. */
  readonly console: string
}

export interface StackContext {
  readonly entries: Entries
  readonly signals: ShutdownSignals
  readonly print: (text: string) => void
}

const TAIL_LINES = 10
/** The API exits with a line that begins like this if it cannot run on the database. */
const UNUSABLE_DATABASE = 'schema: '
/** The exit code of a command that SIGINT has terminated. */
const EXIT_SIGINT = 130

type StackEvent = 'ready' | 'stop-requested' | { readonly error: string }

/** Runs Postgres and the services until they stop. Resolves with the exit code when all processes have exited. */
export async function runStack(requested: StartSettings, context: StackContext): Promise<number> {
  const { stop, forceStop } = context.signals
  const data = openDataDir(requested.dataDir)
  const lock = acquireLock(data.lock)
  try {
    const settings = await resolvePorts(requested, lock.wasStale)
    // Both take about a second.
    const building = updateConsole(context.entries.console, context.print)
    const postgres = await startPostgres({ dataDir: data.postgres, log: data.postgresLog })
    const forceStopPostgres = () => void postgres.stop('immediate')
    forceStop.addEventListener('abort', forceStopPostgres)
    try {
      await building
      const code = stop.aborted ? 0 : await runServices(settings, context, data, postgres)
      return forceStop.aborted ? EXIT_SIGINT : code
    } finally {
      await postgres.stop(forceStop.aborted ? 'immediate' : 'fast')
    }
  } catch (error) {
    // Ctrl-C also interrupts initdb: that is not an error.
    if (stop.aborted) return 0
    throw error
  } finally {
    lock.release()
  }
}

async function runServices(
  settings: StartSettings,
  { entries, signals: { stop, forceStop }, print }: StackContext,
  data: DataDir,
  postgres: Postgres,
): Promise<number> {
  const { env } = settings
  const hasOperatorTokens = Boolean(env.PDM_OPERATOR_TOKENS?.trim() || env.PDM_OPERATOR_TOKENS_FILE?.trim())
  const operatorToken = hasOperatorTokens ? undefined : loadOrCreateToken(data.operatorToken)
  const witnessToken = env.BEARER_TOKENS_CSV?.trim() ? undefined : loadOrCreateToken(data.witnessToken)
  const databaseUrl = await ensureDatabase(postgres.url, 'pdm')
  // Below the long text of the quickstart, where they are seen.
  const warnings = [...findStartWarnings(env)]
  let isRunning = false
  const printWarnings = () => {
    for (const warning of warnings.splice(0)) print(`Warning: ${warning}\n`)
  }
  const warn = (sentence: string) => {
    warnings.push(sentence)
    if (isRunning) printWarnings()
  }
  const services = [
    apiService(settings, entries.api, data, { databaseUrl, operatorToken, witnessToken }),
    witnessService(settings, entries.witness, data, witnessToken),
  ].map(service => ({ ...service, running: startService(service, warn) }))
  const forEachService = (stopOne: (running: RunningService) => Promise<void>) =>
    Promise.all(services.map(({ running }) => stopOne(running)))
  forceStop.addEventListener('abort', () => void forEachService(running => running.kill()))

  const exitErrors = services.map(({ running }) => running.exitError)
  const ended = untilFirstExit(exitErrors, postgres, data, stop)
  let isStopping = false
  void ended.then(() => {
    isStopping = true
  })
  const first = await Promise.race([ended, untilAllReady(services, () => isStopping)])
  if (first === 'ready') {
    const { password } = postgresPaths(data.postgres)
    const postgresValues = { postgresPort: postgres.port, postgresPassword: password, postgresLog: data.postgresLog }
    const tokens = {
      ...(operatorToken
        ? { operatorTokenFile: data.operatorToken, signInCode: createSignInCode(operatorToken, Date.now()) }
        : {}),
      ...(witnessToken ? { witnessTokenFile: data.witnessToken } : {}),
    }
    print(
      renderQuickstart({
        ...settings,
        dataDir: data.path,
        apiLog: data.apiLog,
        ...postgresValues,
        witnessLog: data.witnessLog,
        ...tokens,
      }),
    )
  }
  isRunning = true
  printWarnings()
  const last = first === 'ready' ? await ended : first
  print(typeof last === 'object' ? `${last.error}\n` : '\nShutting down gracefully (press Ctrl-C again to force) …\n')
  await forEachService(running => (forceStop.aborted ? running.kill() : running.stop()))
  return typeof last === 'object' ? 1 : 0
}

interface ApiValues {
  readonly databaseUrl: string
  readonly operatorToken: string | undefined
  readonly witnessToken: string | undefined
}

function apiService(
  { env, apiPort, operatorPort, dnsPort, witnessPort }: StartSettings,
  entry: string,
  data: DataDir,
  { databaseUrl, operatorToken, witnessToken }: ApiValues,
): Service {
  // `start` has a database of its own.
  const { BEARER_TOKENS_CSV: _, PDM_DATABASE_URL_FILE: __, ...apiEnv } = env
  return {
    name: 'API',
    entry,
    log: data.apiLog,
    probe: `http://127.0.0.1:${apiPort}/readyz`,
    adviseOnExit: tail => {
      const reason = tail.find(line => line.startsWith(UNUSABLE_DATABASE))?.slice(UNUSABLE_DATABASE.length)
      return reason && `${reason}; \`start\` creates one if you move ${data.postgres} away`
    },
    env: {
      ...apiEnv,
      PORT: String(apiPort),
      PDM_DATABASE_URL: databaseUrl,
      PDM_OPERATOR_PORT: String(operatorPort),
      ...(operatorToken ? { PDM_OPERATOR_TOKENS: operatorToken } : {}),
      ...(witnessToken && !env.PDM_WITNESS_URL?.trim()
        ? { PDM_WITNESS_URL: `http://127.0.0.1:${witnessPort}`, PDM_WITNESS_TOKEN: witnessToken }
        : {}),
      PDM_LISTEN_ADDRESS: env.PDM_LISTEN_ADDRESS?.trim() || '127.0.0.1',
      PDM_LOOPBACK_HOSTS_ONLY: env.PDM_LOOPBACK_HOSTS_ONLY?.trim() || 'true',
      DNSPROVIDER_KIND: 'local',
      DNSPROVIDER_LOCAL_PORT: String(dnsPort),
      PDM_DEPLOYMENTS_DIR: env.PDM_DEPLOYMENTS_DIR?.trim() || data.deployments,
    },
  }
}

function witnessService(
  { env, witnessPort }: StartSettings,
  entry: string,
  data: DataDir,
  witnessToken: string | undefined,
): Service {
  return {
    name: 'Lease witness',
    entry,
    log: data.witnessLog,
    probe: `http://127.0.0.1:${witnessPort}/healthz`,
    env: {
      PORT: String(witnessPort),
      DATA_DIR: data.path,
      LOOPBACK_HOSTS_ONLY: env.PDM_LOOPBACK_HOSTS_ONLY?.trim() || 'true',
      BEARER_TOKENS_CSV: witnessToken ?? env.BEARER_TOKENS_CSV,
      ...Object.fromEntries(WITNESS_SETTINGS.map(name => [name, env[name]])),
      HOME: env.HOME,
      TMPDIR: env.TMPDIR,
    },
  }
}

async function untilAllReady(
  services: readonly (Service & { readonly running: RunningService })[],
  isStopping: () => boolean,
): Promise<StackEvent> {
  const isReady = await Promise.all(services.map(({ running }) => running.waitUntilReady(isStopping)))
  const late = services.filter((_, i) => !isReady[i]).map(({ name }) => name)
  if (late.length === 0) return 'ready'
  return { error: `not ready within ${READY_TIMEOUT_MS / 1_000} s: ${late.join(', ')}` }
}

function untilFirstExit(
  exitErrors: readonly Promise<string>[],
  postgres: Postgres,
  data: DataDir,
  stop: AbortSignal,
): Promise<StackEvent> {
  return new Promise(resolve => {
    const requestStop = () => resolve('stop-requested')
    if (stop.aborted) requestStop()
    stop.addEventListener('abort', requestStop)
    for (const exitError of exitErrors) void exitError.then(error => resolve({ error }))
    void postgres.exited.then(async exit => {
      const tail = await lastLines(data.postgresLog, TAIL_LINES)
      resolve({ error: formatExit('Postgres', exit, data.postgresLog, tail.split('\n')) })
    })
  })
}
