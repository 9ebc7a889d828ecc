import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findWorkerd } from '@pool/test-kit/processes.ts'
import { startLocalWitness } from '@pool/test-kit/services.ts'
import { startWitness as startTestWitness } from '@pool/testing'

export interface RunningWitness extends AsyncDisposable {
  readonly port: number
  readonly token: string
  /** Stops the process that decides on leases. Returns a function that continues it. */
  readonly freeze?: () => () => void
}

/** The lease witness under workerd, as `pnpm start` runs it. */
export const startWitness = async (env: Readonly<Record<string, string>> = {}): Promise<RunningWitness> => {
  const folder = mkdtempSync(join(tmpdir(), 'client-witness-'))
  const token = randomBytes(24).toString('hex')
  const { port, process: node } = await startLocalWitness(folder, {
    HOME: folder,
    TMPDIR: folder,
    BEARER_TOKENS_CSV: token,
    ...env,
  })
  return {
    port,
    token,
    freeze: () => {
      const pid = findWorkerd(node.pid)
      if (pid === undefined) throw new Error('the witness has no workerd')
      process.kill(pid, 'SIGSTOP')
      return () => void process.kill(pid, 'SIGCONT')
    },
    [Symbol.asyncDispose]: async () => {
      await node.stop()
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
