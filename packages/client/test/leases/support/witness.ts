import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev-server/process'
import { startWitness as startTestWitness } from '@pool/testing'

export interface RunningWitness extends AsyncDisposable {
  readonly port: number
  readonly token: string
}

const ENTRY = fileURLToPath(import.meta.resolve('lease-witness/local/main.ts'))

/** The lease witness under workerd, as `pnpm start` runs it. */
export const startWitness = async (): Promise<RunningWitness> => {
  const folder = mkdtempSync(join(tmpdir(), 'client-witness-'))
  const token = randomBytes(24).toString('hex')
  const env = {
    PORT: '0',
    DATA_DIR: folder,
    HOME: folder,
    TMPDIR: folder,
    BEARER_TOKENS_CSV: token,
    // The candidates share the token.
    MAX_REQUESTS_PER_MINUTE: '0',
    LOG_LEVEL: 'error',
  }
  const process = startNode({ entry: ENTRY, env })
  const { port } = await process.ready
  if (typeof port !== 'number') throw new Error(`the ready line of the witness has no port: ${process.lastLines()}`)
  return {
    port,
    token,
    [Symbol.asyncDispose]: async () => {
      await process.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The lease witness as a process on a Postgres of its own. */
export const startPostgresWitness = async (): Promise<RunningWitness> => {
  const witness = await startTestWitness({ on: 'postgres', env: { MAX_REQUESTS_PER_MINUTE: '0' } })
  return {
    port: Number(new URL(witness.url).port),
    token: witness.token,
    [Symbol.asyncDispose]: () => witness[Symbol.asyncDispose](),
  }
}
