import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@pool/dev/ports'
import { findWorkerd } from '@pool/test-kit/processes.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { LogSecretScanner } from './log-secrets.ts'
import { SupervisedProcess } from './supervised-process.ts'

export interface Witness {
  readonly url: string
  readonly token: string
  readonly process: SupervisedProcess
  /** The process id of the current workerd. */
  readonly workerd: () => number | undefined
}

const entry = fileURLToPath(import.meta.resolve('lease-witness/local/main.ts'))

/** The witness under workerd. Its storage survives restarts. */
export const startSoakWitness = async (
  folder: string,
  scanner: LogSecretScanner,
  invariants: InvariantChecker,
  cleanup: AsyncDisposableStack,
): Promise<Witness> => {
  const token = randomBytes(24).toString('hex')
  scanner.add('the witness token', token)
  const data = join(folder, 'witness')
  mkdirSync(data)
  const port = await freePort()
  const witness = new SupervisedProcess({
    entry,
    // A killed witness would leave workerd running for a moment, which writes to the folder during the cleanup.
    stopGracefully: true,
    env: {
      PORT: String(port),
      DATA_DIR: data,
      BEARER_TOKENS_CSV: token,
      HOME: folder,
      TMPDIR: folder,
      CLOUDFLARE_CF_FETCH_ENABLED: 'false',
      WRANGLER_SEND_METRICS: 'false',
    },
    onLine: line => scanner.scan('the witness', line),
    onUnexpectedExit: lastLines => invariants.reportAnomaly(`the witness exited unexpectedly: ${lastLines}`),
  })
  cleanup.use(witness)
  await witness.start()
  const workerd = () => (witness.running ? findWorkerd(witness.running.pid) : undefined)
  return { url: `http://127.0.0.1:${port}`, token, process: witness, workerd }
}
