import type { Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import postgres from 'postgres'

/** The SQLSTATE of a statement that found another database than the one in which the current epoch started. */
const OTHER_DATABASE = '57PD3'
/** Another epoch can start while a statement is repeated. More than that is a defect. */
const MAX_ATTEMPTS = 3

/** Why an epoch started: see the table lease_epochs. */
export type EpochReason = 'created' | 'promoted' | 'restored' | 'declared'

export interface Epoch {
  readonly epoch: number
  readonly reason: EpochReason
  /** By how much all generations have been raised since the first epoch. */
  readonly generationBase: number
}

export interface EpochsOptions {
  readonly timeoutMs: number
  /** An epoch other than the first has started: acknowledged writes may be missing. */
  readonly onStarted: (epoch: Epoch) => void
}

const isOtherDatabase = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && error.code === OTHER_DATABASE

/** Declares that the database was restored from an older state. Generations jump before the next write. */
export const declareRestore = async (sql: Sql, timeoutMs: number): Promise<Epoch> => {
  const [epoch] = await startEpoch(sql, true, timeoutMs)
  if (!epoch) throw new Error('start_lease_epoch returned no row')
  return epoch
}

const startEpoch = (sql: Sql, isDeclared: boolean, timeoutMs: number) =>
  withTimeout(
    sql<(Epoch & { readonly isNew: boolean })[]>`
      select epoch, reason, generation_base as "generationBase", is_new as "isNew"
      from start_lease_epoch(${isDeclared}::boolean)`,
    timeoutMs,
  )

export type Epochs = ReturnType<typeof createEpochs>

/**
 * The epochs of the database (see the table lease_epochs). A statement that calls `lease_generation_base` has no effect in a
 * database that may lack acknowledged writes. `run` then starts an epoch, in which all generations have jumped, and
 * executes the statement again.
 */
export const createEpochs = (sql: Sql, { timeoutMs, onStarted }: EpochsOptions) => {
  let pending: Promise<void> | undefined

  const compare = async (): Promise<void> => {
    const [epoch] = await startEpoch(sql, false, timeoutMs)
    if (epoch?.isNew && epoch.reason !== 'created') onStarted(epoch)
  }

  /** Concurrent calls share one comparison. */
  const ensureCurrent = (): Promise<void> => {
    pending ??= compare().finally(() => {
      pending = undefined
    })
    return pending
  }

  return {
    ensureCurrent,
    async run<Result>(execute: () => Promise<Result>): Promise<Result> {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await execute()
        } catch (error) {
          if (!isOtherDatabase(error) || attempt === MAX_ATTEMPTS) throw error
          await ensureCurrent()
        }
      }
    },
  }
}
