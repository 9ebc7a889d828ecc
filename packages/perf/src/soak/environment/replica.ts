import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@pool/dev/ports'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { LogSecretScanner } from './log-secrets.ts'
import { SupervisedProcess } from './supervised-process.ts'

export interface Replica {
  readonly number: number
  readonly url: string
  readonly operatorUrl: string
  readonly process: SupervisedProcess
  /** Why it responded with 503 to requests, by their ids. */
  readonly causes: ReadonlyMap<string, string>
  /** The proxy between the replica and the database. */
  readonly link: TcpProxy
  /** Sets its wall clock, in milliseconds ahead of this machine's. */
  readonly setClock: (aheadMs: number) => void
}

export interface ReplicaOptions {
  readonly number: number
  readonly folder: string
  readonly database: { readonly url: string; readonly port: number }
  readonly operatorToken: string
  readonly env: Readonly<Record<string, string>>
  readonly scanner: LogSecretScanner
  readonly invariants: InvariantChecker
}

const entry = fileURLToPath(import.meta.resolve('allocation-api/src/main.ts'))
const clock = import.meta.resolve('./shifted-clock.ts')
/** The log line of a failed request has the cause of its 500. */
const ANOMALY = /unhandled rejection|"level":"fatal"|"request failed"/

/** A request whose database was not available. */
const UNAVAILABLE = /"requestId":"([^"]+)".*"cause":"([^"]*)"/

/** The API as it is deployed, with its own proxy to the database. */
export const startReplica = async (options: ReplicaOptions, cleanup: AsyncDisposableStack): Promise<Replica> => {
  const { number, folder, database, operatorToken, env, scanner, invariants } = options
  const clockFile = join(folder, `clock-${number}`)
  const setClock = (aheadMs: number) => writeFileSync(clockFile, String(aheadMs))
  setClock(0)
  const link = await startTcpProxy(database.port)
  cleanup.defer(() => link.close())
  const [port, operatorPort] = await Promise.all([freePort(), freePort()])
  const url = Object.assign(new URL(database.url), { port: String(link.port) }).href
  const causes = new Map<string, string>()
  const home = join(folder, `home-${number}`)
  mkdirSync(home)
  const replica = new SupervisedProcess({
    entry,
    stopGracefully: false,
    env: {
      HOME: home,
      TMPDIR: folder,
      NODE_OPTIONS: `--import=${clock}`,
      SOAK_CLOCK_FILE: clockFile,
      PORT: String(port),
      PDM_OPERATOR_PORT: String(operatorPort),
      PDM_OPERATOR_TOKENS: operatorToken,
      PDM_DATABASE_URL: url,
      ...env,
    },
    onLine: line => {
      scanner.scan(`replica ${number}`, line)
      const [, requestId, cause] = UNAVAILABLE.exec(line) ?? []
      if (requestId && cause) causes.set(requestId, cause)
      if (ANOMALY.test(line)) invariants.reportAnomaly(`replica ${number}: ${line}`)
    },
    onUnexpectedExit: lastLines => invariants.reportAnomaly(`replica ${number} exited unexpectedly: ${lastLines}`),
  })
  cleanup.use(replica)
  await replica.start()
  return {
    number,
    url: `http://127.0.0.1:${port}`,
    operatorUrl: `http://127.0.0.1:${operatorPort}`,
    process: replica,
    causes,
    link,
    setClock,
  }
}
