import type { Sql } from './client.ts'
import type { Sessions } from './sessions.ts'
import { explainUnprepared, StartupError } from './startup-errors.ts'
import { withTimeout } from './with-timeout.ts'

/** Long enough for a statement, and short enough for a start. */
const TIMEOUT_MS = 2_000
/** The SQLSTATE of an unknown prepared statement. */
const UNKNOWN_STATEMENT = '26000'

/**
 * Rejects with a `StartupError` if a connection pooler gives a prepared statement to a server connection that does not know
 * it. The driver repeats such a statement, but not reliably under load. `open` creates a client with one connection. A
 * pooler with a single server connection cannot be examined; its prepared statements work.
 */
export const checkPreparedStatements = async (
  sql: Sql,
  { open, urlVariable }: { readonly open: (sessions: Pick<Sessions, 'add'>) => Sql; readonly urlVariable: string },
): Promise<void> => {
  const session = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
  // Only a pooler has process ids of its own.
  if (session.state.pid === session[0]?.pid) return
  let isUnknown = false
  const sessions: Pick<Sessions, 'add'> = {
    add(socket) {
      socket.on('sqlstate', code => {
        isUnknown ||= code === UNKNOWN_STATEMENT
      })
    },
  }
  const [prepared, other] = [open(sessions), open(sessions)]
  const execute = () => withTimeout(prepared`select ${1}::int as one`, TIMEOUT_MS)
  try {
    await execute()
    // The transaction takes the server connection on which the statement was prepared, because it was used last.
    await withTimeout(other`begin`, TIMEOUT_MS)
    await withTimeout(other`select 1 as one`, TIMEOUT_MS)
    await execute().catch(() => {})
  } finally {
    await Promise.all([prepared, other].map(client => client.end({ timeout: 0 })))
  }
  if (isUnknown) throw new StartupError(explainUnprepared(urlVariable))
}
