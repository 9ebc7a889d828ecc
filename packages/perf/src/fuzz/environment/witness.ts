import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev-server/process'
import type { Running } from './api.ts'
import { openLog } from './logs.ts'

export interface WitnessStage extends Running {
  readonly tokens: readonly [string, string]
}

/** The witness under workerd, with new storage. Stopped in order: what would be left behind is workerd. */
export const startWitness = async (
  folder: string,
  mark: string,
  cleanup: AsyncDisposableStack,
): Promise<WitnessStage> => {
  const tokens = [`WA${mark}0123456789abcdef`, `WB${mark}0123456789abcdef`] as const
  const log = openLog(join(folder, 'witness.log'))
  const child = startNode({
    entry: fileURLToPath(import.meta.resolve('lease-witness/local/main.ts')),
    onLine: log.write,
    env: { PORT: '0', BEARER_TOKENS_CSV: tokens.join(','), DATA_DIR: join(folder, 'witness') },
  })
  cleanup.defer(async () => void (await child.stop()))
  const { port } = await child.ready
  if (typeof port !== 'number') throw new Error('the witness did not say where it listens')
  return { pid: child.pid, port, tokens, log, exited: child.exited, stop: () => child.stop() }
}
