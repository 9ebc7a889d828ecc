import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@pool/dev-server/ports'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { createProgram, type Program } from './program.ts'
import type { SecretWatch } from './secrets.ts'

export interface Replica {
  readonly number: number
  readonly url: string
  readonly operatorUrl: string
  readonly program: Program
  /** Between it and the database. */
  readonly link: TcpProxy
  /** Its wall clock, in milliseconds ahead of this machine's. */
  readonly setClock: (aheadMs: number) => void
}

export interface ReplicaOptions {
  readonly number: number
  readonly folder: string
  readonly database: { readonly url: string; readonly port: number }
  readonly operatorToken: string
  readonly env: Readonly<Record<string, string>>
  readonly watch: SecretWatch
  /** What no process of ours should come to: an error that nobody caught, or an end that nobody asked for. */
  readonly onDefect: (what: string) => void
}

const entry = fileURLToPath(import.meta.resolve('allocation-api/src/main.ts'))
const clock = import.meta.resolve('./shifted-clock.ts')

/** The API as it is deployed, with its own way to the database. */
export const startReplica = async (options: ReplicaOptions, cleanup: AsyncDisposableStack): Promise<Replica> => {
  const { number, folder, database, operatorToken, env, watch, onDefect } = options
  const clockFile = join(folder, `clock-${number}`)
  const setClock = (aheadMs: number) => writeFileSync(clockFile, String(aheadMs))
  setClock(0)
  const link = await startTcpProxy(database.port)
  cleanup.defer(() => link.close())
  const [port, operatorPort] = await Promise.all([freePort(), freePort()])
  const url = Object.assign(new URL(database.url), { port: String(link.port) }).href
  const home = join(folder, `home-${number}`)
  mkdirSync(home)
  const program = createProgram({
    entry,
    endsInOrder: false,
    env: () => ({
      HOME: home,
      TMPDIR: folder,
      NODE_OPTIONS: `--import=${clock}`,
      SOAK_CLOCK_FILE: clockFile,
      PORT: String(port),
      PDM_OPERATOR_PORT: String(operatorPort),
      PDM_OPERATOR_TOKENS: operatorToken,
      PDM_DATABASE_URL: url,
      ...env,
    }),
    onLine: line => {
      watch.look(`replica ${number}`, line)
      // The line with the cause of a 500 is the evidence.
      if (/unhandled rejection|"level":"fatal"|"request failed"/.test(line)) onDefect(`replica ${number}: ${line}`)
    },
    onEnded: last => onDefect(`replica ${number} ended by itself: ${last}`),
  })
  cleanup.use(program)
  await program.start()
  return {
    number,
    url: `http://127.0.0.1:${port}`,
    operatorUrl: `http://127.0.0.1:${operatorPort}`,
    program,
    link,
    setClock,
  }
}
