import { type ImportResponse, operations } from '@pool/contract'
import type { Transfer } from '../../transfer/transfer.ts'
import { getCaller, type Handlers, RETRY_AFTER_S, sendError, streamBody, validated } from '../request.ts'
import { type ListStreams, sendStream } from '../streams.ts'

/**
 * `first`, then the parts of `rest`. It is no generator: the `return` of a generator that has not started, because its client
 * has left, would not reach `rest`, and its snapshot would stay open.
 */
const startWith = (first: string, rest: AsyncGenerator<string>): AsyncIterable<string> => {
  const parts = [first]
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        const value = parts.pop()
        return value === undefined ? rest.next() : { done: false, value }
      },
      return: () => rest.return(undefined),
    }),
  }
}

export const transferHandlers = (
  transfer: Transfer,
  { limiter, onStreamError }: ListStreams,
): Pick<Handlers, 'exportInstallation' | 'importInstallation'> => ({
  exportInstallation: async c => {
    const permit = limiter.acquire(c.env.address)
    if (!permit) return sendError(c, { kind: 'too-many-readers', retryAfterSeconds: RETRY_AFTER_S })
    try {
      const lines = transfer.export()
      // Before the status is sent, so an unavailable database is a 503.
      const { value = '' } = await lines.next()
      c.env.outcome = 'exported'
      const headers = { 'Content-Type': 'application/x-ndjson' }
      return sendStream(c, startWith(value, lines), permit, onStreamError, headers)
    } catch (error) {
      permit.release()
      throw error
    }
  },
  importInstallation: validated(operations.importInstallation, async (c, { query: { from, to, dryRun } }) => {
    const isDryRun = dryRun === 'true'
    const chunks = streamBody(c)
    const outcome =
      from === undefined || to === undefined
        ? await transfer.import(chunks, { isDryRun })
        : await transfer.importNames(chunks, { from, to, caller: getCaller(c), isDryRun })
    if (outcome.kind !== 'imported' && outcome.kind !== 'moved') return sendError(c, outcome)
    c.env.outcome = isDryRun ? 'checked' : outcome.kind
    const isMove = outcome.kind === 'moved'
    const body: ImportResponse = {
      dryRun: isDryRun,
      rows: isMove ? { pool_allocations: outcome.count } : { ...outcome.rows },
      stoppedZones: isMove ? [] : [...outcome.stoppedZones],
      skipped: isMove ? [...outcome.skipped] : [],
      skippedCount: isMove ? outcome.skippedCount : 0,
    }
    return c.json(body, 200)
  }),
})
