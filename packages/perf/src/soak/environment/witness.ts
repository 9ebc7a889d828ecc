import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@pool/dev-server/ports'
import { workerdOf } from '@pool/test-kit/processes.ts'
import { createProgram, type Program } from './program.ts'
import type { SecretWatch } from './secrets.ts'

export interface Witness {
  readonly url: string
  readonly token: string
  readonly program: Program
  /** The workerd that it runs at this moment. */
  readonly workerd: () => number | undefined
}

const entry = fileURLToPath(import.meta.resolve('lease-witness/local/main.ts'))

/** The witness under workerd; its storage outlives it. */
export const startWitness = async (
  folder: string,
  watch: SecretWatch,
  cleanup: AsyncDisposableStack,
  onDefect: (what: string) => void,
): Promise<Witness> => {
  const token = randomBytes(24).toString('hex')
  watch.add('the witness token', token)
  const data = join(folder, 'witness')
  mkdirSync(data)
  const port = await freePort()
  const program = createProgram({
    entry,
    // Killed, it would leave workerd behind for a moment, which writes where we clean up.
    endsInOrder: true,
    env: () => ({
      PORT: String(port),
      DATA_DIR: data,
      BEARER_TOKENS_CSV: token,
      HOME: folder,
      TMPDIR: folder,
      CLOUDFLARE_CF_FETCH_ENABLED: 'false',
      WRANGLER_SEND_METRICS: 'false',
    }),
    onLine: line => watch.look('the witness', line),
    onEnded: last => onDefect(`the witness ended by itself: ${last}`),
  })
  cleanup.use(program)
  await program.start()
  const workerd = () => (program.running ? workerdOf(program.running.pid) : undefined)
  return { url: `http://127.0.0.1:${port}`, token, program, workerd }
}
