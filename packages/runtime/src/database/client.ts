import { readFile } from 'node:fs/promises'
import { createConnection, isIP, Socket } from 'node:net'
import { type ConnectionOptions, checkServerIdentity, connect as connectTls } from 'node:tls'
import postgres from 'postgres'
import { type ConnectionString, parseConnectionString, type TlsSettings } from './connection-string.ts'
import { isReadOnlyCode, NO_WRITABLE_SERVER, toConnectionError } from './errors.ts'

export type Sql = postgres.Sql<{ int8: number }>

/** A part of a statement. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>

/**
 * Moves the rows out of the driver's result array. The driver keeps results alive until V8's next major garbage
 * collection, so streaming a large zone would otherwise accumulate them.
 */
export const drainRows = <Row>(result: Row[]): Row[] => result.splice(0)

const monotonicNow = (): number => performance.now()

/** The driver ends a session after this event, when it has completed the statements that were sent. */
const EXPIRE = 'expire'
/** The driver emits it with the SQLSTATE of each error. */
const SQL_STATE = 'sqlstate'

/** The socket emits it with the time of a write that the server has not answered for too long. Then the socket is closed. */
const SILENT = 'silent'
/** The socket closes after this event, unless it waits for an answer. */
const DISTRUST = 'distrust'

/** A socket of the driver, which listens to EXPIRE and DISTRUST, and emits SQL_STATE and SILENT. */
export interface SessionSocket {
  emit(event: string): boolean
  on(event: typeof SQL_STATE, listener: (code: string) => void): unknown
  on(event: typeof SILENT, listener: (since: number) => void): unknown
  on(event: 'data' | 'close', listener: () => void): unknown
}

/** Milliseconds of the monotonic clock. */
interface Session {
  readonly openedAt: number
  receivedAt: number
}

/** While a database rejects writes, no session is replaced more often. */
const MIN_AGE_MS = 1_000

export type Sessions = ReturnType<typeof createSessions>

/**
 * The open sessions of one or more pools.
 *
 * A session can stay read-only after its database accepts writes again: a default of the database or the role applies when a
 * session begins, and behind one address another server may have become the primary. Once one session reports it, all older
 * ones are replaced.
 *
 * A server that vanished closes no connection. An idle connection to it looks sound, and its next statement waits in vain.
 * Once one session was silent for too long, all idle ones that have received nothing since then are closed.
 */
export const createSessions = (now: () => number = monotonicNow) => {
  const open = new Map<SessionSocket, Session>()
  const expireOlderThan = (ageMs: number): void => {
    for (const [socket, { openedAt }] of open) if (now() - openedAt >= ageMs) socket.emit(EXPIRE)
  }
  return {
    /** Adds the socket of a session that can be used. */
    add(socket: SessionSocket): void {
      const session: Session = { openedAt: now(), receivedAt: now() }
      open.set(socket, session)
      socket.on('close', () => open.delete(socket))
      socket.on('data', () => {
        session.receivedAt = now()
      })
      socket.on(SQL_STATE, code => {
        if (isReadOnlyCode(code)) expireOlderThan(MIN_AGE_MS)
      })
      socket.on(SILENT, since => {
        for (const [other, { receivedAt }] of open) if (receivedAt < since) other.emit(DISTRUST)
      })
    },
    /** Replaces all sessions. */
    expire(): void {
      expireOlderThan(0)
    },
  }
}

/** After the driver has ended a connection, its server needs only to close its side. */
const MAX_CLOSE_MS = 1_000

/**
 * Destroys the socket if nothing arrives within `timeoutMs` of a write, after it has emitted SILENT. A peer that vanished,
 * such as the old primary of a failover, sends no reset. Without this timeout, statements would be sent to it until the kernel
 * stops retransmitting, about 15 minutes later. A connection that the driver ends is destroyed after a second: a server that
 * hangs never closes its side, and an open socket keeps the process alive.
 */
const destroyOnSilence = (socket: Socket, timeoutMs: number): void => {
  let timer: NodeJS.Timeout | undefined
  let maxCloseMs = MAX_CLOSE_MS
  const stopTimer = () => {
    clearTimeout(timer)
    timer = undefined
  }
  const startTimer = () => {
    if (timer) return
    const since = monotonicNow()
    const fail = () => {
      if (!timer) return
      socket.emit(SILENT, since)
      socket.destroy(Object.assign(new Error(`no answer for ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
    }
    // After a pause of this process, the answer may have arrived and is read next.
    timer = setTimeout(() => setImmediate(fail), timeoutMs).unref()
  }
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  socket.write = (...args: unknown[]) => {
    startTimer()
    return write(...args)
  }
  const end = socket.end.bind(socket) as (...args: unknown[]) => Socket
  socket.end = (...args: unknown[]) => {
    setTimeout(() => socket.destroy(), maxCloseMs).unref()
    return end(...args)
  }
  socket.on(DISTRUST, () => {
    if (timer) return
    maxCloseMs = 0
    socket.emit(EXPIRE)
  })
  socket.on('data', stopTimer)
  socket.on('close', stopTimer)
}

/** What the driver passes: its own defaults. */
interface DriverTarget {
  readonly host: readonly string[]
  readonly port: readonly number[]
}

interface HostState {
  readonly host: string
  readonly port: number
  /** Not null: it did not respond, so every other host comes first, and it is tried again at this time. */
  silentUntil: number | null
  lastError: Error | null
}

/**
 * What this process knows of the hosts of a connection string. Every client, and every attempt of a start, adds to it. A
 * rejection is not part of it: another client can ask for another session.
 */
interface KnownHosts {
  readonly states: readonly HostState[]
  /** The host that last accepted a session. */
  preferred: HostState | null
}

const knownHosts = new Map<string, KnownHosts>()

/** The first message of a TLS connection (Postgres manual, message formats: SSLRequest). */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const SSL_ACCEPTED = 0x53
const CONNECT_TIMEOUT_MS = 5_000
const DEFAULT_PORT = 5_432
/** After a server rejected a session, the others are tried first for this time. */
const REJECTION_MS = 1_000
/** After a host did not respond, the others are tried alone for this time. */
const SILENCE_MS = 2_000
/** A host that fails later than this did not respond: a refused connection takes milliseconds. */
const MAX_REFUSAL_MS = 1_000

const toConnectError = (code: string, message: string, cause?: unknown): Error =>
  Object.assign(new Error(message, { cause }), { code })

const readTlsFile = (parameter: string, path: string): Promise<Buffer> =>
  readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw toConnectError('CONNECT_TLS_FILE', `the file of ${parameter} cannot be read (${error.code})`)
  })

/** The files are read for each connection, as in libpq, so that a renewed certificate needs no restart. */
const readTlsOptions = async (tls: TlsSettings): Promise<ConnectionOptions> => ({
  ...(tls.authorityFile === null ? {} : { ca: await readTlsFile('sslrootcert', tls.authorityFile) }),
  ...(tls.client === null
    ? {}
    : {
        cert: await readTlsFile('sslcert', tls.client.certificateFile),
        key: await readTlsFile('sslkey', tls.client.keyFile),
      }),
  rejectUnauthorized: tls.verify !== 'none',
  checkServerIdentity: tls.verify === 'host' ? checkServerIdentity : () => undefined,
})

const toTlsError = (error: unknown): Error => {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  // A reset or a timeout says nothing of the configuration.
  if (/^(?:ECONN|EPIPE|ETIMEDOUT|CONNECT_)/.test(code)) return error as Error
  return toConnectError('CONNECT_TLS_FAILED', `TLS with the database server failed (${code})`, error)
}

/** Resolves with the socket when `event` happens; rejects if it fails or closes before. */
const untilEvent = (socket: Socket, event: string): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const onError = (error: Error) => reject(error)
    const onClose = () => reject(toConnectError('ECONNRESET', 'the server closed the connection'))
    socket.once('error', onError)
    socket.once('close', onClose)
    socket.once(event, value => {
      socket.removeListener('error', onError)
      socket.removeListener('close', onClose)
      resolve(value)
    })
  })

const encrypt = async (socket: Socket, host: string, options: ConnectionOptions): Promise<Socket> => {
  socket.write(SSL_REQUEST)
  const answer = (await untilEvent(socket, 'data')) as Buffer
  if (answer[0] !== SSL_ACCEPTED) {
    throw toConnectError('CONNECT_TLS_UNSUPPORTED', 'the database server does not support TLS')
  }
  // More bytes than the answer would not be encrypted: another sender is possible (CVE-2021-23222).
  if (answer.length > 1) throw toConnectError('CONNECT_TLS_FAILED', 'the database server sent data before TLS')
  const encrypted = connectTls({ ...options, socket, host, ...(isIP(host) ? {} : { servername: host }) })
  await untilEvent(encrypted, 'secureConnect')
  return encrypted
}

const createTimeoutError = () => toConnectError('CONNECT_TIMEOUT', 'the database server did not respond')

const connectTo = async ({ host, port }: HostState, tls: TlsSettings | null): Promise<Socket> => {
  const isPath = host.startsWith('/')
  const options = tls && !isPath ? await readTlsOptions(tls) : null
  const socket = isPath ? createConnection({ path: `${host}/.s.PGSQL.${port}` }) : createConnection({ host, port })
  // Without a listener, an error that arrives between two steps would end the process.
  socket.on('error', () => {})
  const timer = setTimeout(() => socket.destroy(createTimeoutError()), CONNECT_TIMEOUT_MS)
  try {
    await untilEvent(socket, 'connect')
    return options ? await encrypt(socket, host, options).catch(error => Promise.reject(toTlsError(error))) : socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** A socket that fails. The driver handles only errors of a socket that it has. */
const createFailedSocket = (error: Error): Socket => {
  const socket = new Socket()
  setImmediate(() => socket.destroy(toConnectionError(error, { hadSession: false })))
  return socket
}

/**
 * The hosts to try, in this order. A host that does not respond costs one connect timeout: after it, all others come first,
 * and it is tried again only while none of them accepts sessions.
 */
const toCandidates = (
  { states, preferred }: KnownHosts,
  rejectedUntil: ReadonlyMap<HostState, number>,
): readonly HostState[] => {
  const now = monotonicNow()
  const ordered = preferred ? [preferred, ...states.filter(state => state !== preferred)] : states
  if (states.length === 1 || states.every(({ silentUntil }) => silentUntil !== null)) return ordered
  const usable = ordered.filter(state => now >= Math.max(rejectedUntil.get(state) ?? 0, state.silentUntil ?? 0))
  return usable.toSorted((a, b) => Number(a.silentUntil !== null) - Number(b.silentUntil !== null))
}

/**
 * Creates the connected sockets of a pool. Of several hosts, the one that last accepted a session is tried first, then the
 * others in order. The driver emits on the socket: `session` when the session can be used, `sqlstate` for each error of the
 * server, and `unfit` if the server rejects the session or is not one that the connection string wants; then the next host
 * gets its turn, also if the connection fails in another way before the session.
 */
const createSocketFactory = (
  connection: Pick<ConnectionString, 'hosts' | 'sessions' | 'tls'>,
  { silenceMs, sessions }: { readonly silenceMs: number; readonly sessions: Pick<Sessions, 'add'> },
) => {
  const findKnown = (driver: DriverTarget): KnownHosts => {
    const hosts = connection.hosts.length > 0 ? connection.hosts : [{ host: '', port: null }]
    const addresses = hosts.map(({ host, port }, index) => ({
      host: host || (driver.host[0] ?? 'localhost'),
      port: port ?? (index === 0 ? driver.port[0] : undefined) ?? DEFAULT_PORT,
    }))
    const key = JSON.stringify([connection.sessions, addresses])
    const known = knownHosts.get(key) ?? {
      states: addresses.map(address => ({ ...address, silentUntil: null, lastError: null })),
      preferred: null,
    }
    knownHosts.set(key, known)
    return known
  }

  /** The server of the host rejected a session of this client: another host is tried until this time. */
  const rejectedUntil = new Map<HostState, number>()

  const addSilence = (known: KnownHosts, state: HostState): void => {
    state.silentUntil = monotonicNow() + SILENCE_MS
    if (known.preferred === state) known.preferred = null
  }

  const addFailure = (known: KnownHosts, state: HostState, error: Error, startedAt: number): void => {
    state.lastError = toConnectionError(error, { hadSession: false })
    if (monotonicNow() - startedAt >= MAX_REFUSAL_MS) addSilence(known, state)
    else state.silentUntil = null
  }

  const prepare = (socket: Socket, known: KnownHosts, state: HostState, startedAt: number): Socket => {
    destroyOnSilence(socket, silenceMs)
    let hadSession = false
    const reject = (error: Error): void => {
      if (socket.destroyed) return
      addFailure(known, state, error, startedAt)
      rejectedUntil.set(state, monotonicNow() + REJECTION_MS)
      // Without an error, the driver connects again at once. Of a single host, it would never stop.
      socket.destroy(known.states.length > 1 ? undefined : error)
    }
    const timer = setTimeout(
      () => reject(createTimeoutError()),
      Math.max(0, startedAt + CONNECT_TIMEOUT_MS - monotonicNow()),
    )
    // A balancer without a healthy server does this.
    const rejectClose = () => reject(toConnectError('ECONNRESET', 'the server closed the connection'))
    socket.once('end', rejectClose)
    for (const event of ['session', 'sqlstate']) socket.once(event, () => socket.removeListener('end', rejectClose))
    socket.once('close', () => clearTimeout(timer))
    socket.once('session', () => {
      clearTimeout(timer)
      hadSession = true
      state.silentUntil = null
      known.preferred = state
      sessions.add(socket)
    })
    socket.on(SILENT, () => addSilence(known, state))
    socket.once('unfit', (error?: Error) =>
      reject(error ?? toConnectError(NO_WRITABLE_SERVER, 'no database server accepts writes')),
    )
    // Before the listener of the driver, which rejects the statements.
    socket.on('error', error => {
      if (!hadSession) {
        addFailure(known, state, error, startedAt)
        rejectedUntil.set(state, monotonicNow() + REJECTION_MS)
      }
      toConnectionError(error, { hadSession })
    })
    return socket
  }

  let known: KnownHosts | undefined
  return async (driver: DriverTarget): Promise<Socket> => {
    known ??= findKnown(driver)
    for (const state of toCandidates(known, rejectedUntil)) {
      const startedAt = monotonicNow()
      // While it is tried, other connections do not wait for it.
      if (state.silentUntil !== null) state.silentUntil = startedAt + CONNECT_TIMEOUT_MS + SILENCE_MS
      try {
        return prepare(await connectTo(state, connection.tls), known, state, startedAt)
      } catch (error) {
        addFailure(known, state, error as Error, startedAt)
      }
    }
    // A standby, or another server that rejects a session, is the better explanation than a server that is down.
    const errors = known.states.map(({ lastError }) => lastError).filter(error => error !== null)
    const unfit = errors.find(error => 'code' in error && error.code === NO_WRITABLE_SERVER)
    const answer = errors.find(error => error instanceof postgres.PostgresError)
    return createFailedSocket(unfit ?? answer ?? errors[0] ?? toConnectError('CONNECT_FAILED', 'no database server'))
  }
}

export interface DatabaseClientOptions {
  readonly maxConnections: number
  readonly applicationName: string
  /**
   * Milliseconds after which the slowest statement is abandoned. A connection that receives nothing for nearly as long after
   * a write is closed, so that the next statement finds another one. Absent: only the kernel detects a lost peer.
   */
  readonly maxStatementMs?: number
  /** False: each connection carries one statement at a time, because its statements may wait for locks. */
  readonly pipelines?: boolean
  /** Seconds after which an idle connection is closed. Absent: never. */
  readonly idleTimeoutS?: number
  /** False: the driver never replaces a connection, because its transaction is in use. */
  readonly expires?: boolean
  /** Shared by pools whose sessions are replaced when one of them finds the database read-only or silent. Absent: its own. */
  readonly sessions?: Pick<Sessions, 'add'>
}

/** By the connection string: the settings of the sessions that are opened from now on. */
const pinnedSettings = new Map<string, Readonly<Record<string, string>>>()

/** Every session that the client opens from now on has these settings, whatever the connection string says. */
export const setSessionParameters = (sql: Sql, parameters: Readonly<Record<string, string>>): void =>
  void Object.assign(sql.options.connection, parameters)

/** Every client that this process creates for the connection string from now on has these settings in its sessions. */
export const pinSessions = (url: string, parameters: Readonly<Record<string, string>>): void =>
  void pinnedSettings.set(url, parameters)

const DAY_MS = 86_400_000
const SILENT_PART = 0.9

/**
 * How many statements the driver may send on a connection before the first one is answered; none if statements cannot be
 * prepared. The driver then asks the server for the parameter types (Parse, Describe, Flush) and waits for the answer.
 * PgBouncer before 1.22.1 counts only Sync: at the ReadyForQuery of an earlier statement it takes the server away, and
 * that answer is lost (PgBouncer issue 759). The driver's own transactions (`begin`) do not
 * work with this setting (postgres issue 1210).
 */
const pipelineOptions = (url: string, pipelines: boolean): { max_pipeline?: number } =>
  // The driver parses the URL. It opens no connection before the first statement.
  pipelines && postgres(url, { max: 1 }).options.prepare ? {} : { max_pipeline: 0 }

/**
 * A connection pool that connects on demand. It keeps no session state, so it works behind a pooler in transaction mode.
 * A pooler without prepared statements needs `?prepare=false` in the URL. Throws if the URL is not one that
 * `parseConnectionString` accepts.
 */
export const createDatabaseClient = (url: string, options: DatabaseClientOptions): Sql => {
  const connection = parseConnectionString(url)
  if ('issue' in connection) throw new Error(`the connection string ${connection.issue}`)
  const { driverUrl } = connection
  const socket = createSocketFactory(connection, {
    silenceMs: SILENT_PART * (options.maxStatementMs ?? DAY_MS),
    sessions: options.sessions ?? createSessions(),
  })
  const sql: Sql = postgres(driverUrl, {
    max: options.maxConnections,
    // The sockets have their own.
    connect_timeout: 0,
    // The sockets are encrypted before the driver gets them.
    ssl: false,
    ...(connection.sessions === 'any' ? {} : { target_session_attrs: connection.sessions }),
    ...(options.idleTimeoutS === undefined ? {} : { idle_timeout: options.idleTimeoutS }),
    ...(options.expires === false ? { max_lifetime: null } : {}),
    // The driver accepts these two; its types do not declare them.
    ...({ socket, ...pipelineOptions(driverUrl, options.pipelines ?? true) } as object),
    // Reconnects within a second of the database's return, however long the outage was.
    backoff: attempt => Math.min(1, 0.05 * 2 ** attempt),
    // Versions and counts stay far below 2^53.
    types: { int8: { to: 20, from: [20], serialize: String, parse: Number } },
    connection: { application_name: options.applicationName },
    // Only array parameters need the catalog's types. Lists travel as JSON, which saves a round trip per connection.
    fetch_types: false,
    onnotice: () => {},
  })
  setSessionParameters(sql, pinnedSettings.get(url) ?? {})
  return sql
}
