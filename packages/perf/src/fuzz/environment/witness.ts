import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev/process'
import { createWitnessTokens, type TokenRights } from '../witness-tokens.ts'
import type { RunningService } from './api.ts'
import { openLogFile } from './log-file.ts'

export interface WitnessEnvironment extends RunningService {
  /** By number of the client. */
  readonly rights: readonly TokenRights[]
}

const CLIENTS = 32

/** The witness under workerd, with new storage. It is stopped, never killed: a kill would leave workerd running. */
export const startFuzzWitness = async (
  folder: string,
  mark: string,
  cleanup: AsyncDisposableStack,
): Promise<WitnessEnvironment> => {
  const { rights, settings } = createWitnessTokens(mark, CLIENTS)
  const log = openLogFile(join(folder, 'witness.log'))
  const child = startNode({
    entry: fileURLToPath(import.meta.resolve('lease-witness/local/main.ts')),
    onLine: log.write,
    env: { PORT: '0', ...settings, DATA_DIR: join(folder, 'witness') },
  })
  cleanup.defer(async () => void (await child.stop()))
  const { port } = await child.ready
  if (typeof port !== 'number') throw new Error('the witness did not log the port that it listens on')
  return { pid: child.pid, port, rights, log, stop: () => child.stop() }
}
