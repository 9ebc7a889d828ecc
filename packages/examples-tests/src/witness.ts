import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startNode } from '@pool/dev-server/process'

const ENTRY = resolve(import.meta.dirname, '../../../apps/lease-witness/local/main.ts')

export const WITNESS_TOKEN = 'token-of-the-examples-0123456789abcdef'

/** The lease witness in workerd, as `start` runs it. */
export const startWitness = async (): Promise<AsyncDisposable & { readonly port: number; readonly url: string }> => {
  const dataDir = await mkdtemp(join(tmpdir(), 'examples-witness-'))
  const env = { PORT: '0', BEARER_TOKENS_CSV: WITNESS_TOKEN, DATA_DIR: dataDir, LOG_LEVEL: 'error' }
  const witness = startNode({ entry: ENTRY, env: { ...env, MAX_REQUESTS_PER_MINUTE: '0' } })
  const { port } = await witness.ready
  return {
    port: Number(port),
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      await witness.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
