import { readFile } from 'node:fs/promises'
import { createConnection, isIP, Socket } from 'node:net'
import { type ConnectionOptions, checkServerIdentity, connect as connectTls } from 'node:tls'
import type { ConnectionString, TlsSettings } from './connection-string.ts'
import { NO_WRITABLE_SERVER } from './errors.ts'
import { DISTRUST, EXPIRE, type Sessions, SILENT } from './sessions.ts'

/** After the driver has ended a connection, its server needs only to close its side. */
const MAX_CLOSE_MS = 1_000

/**
 * Destroys the socket if nothing arrives within `timeoutMs` of a write, after it has emitted SILENT. A peer that vanished,
 * such as the old primary of a failover, sends no reset. Without this timeout, statements would be sent to it until the kernel
 * stops retransmitting, about 15 minutes later. A connection that the driver ends is destroyed after a second: a server that
 * hangs never closes its side, and an open socket keeps the process alive.
 */
const destroyOnSilence = (socket: Socket, timeoutMs: number, now: () => number): void => {
  let timer: NodeJS.Timeout | undefined
  let maxCloseMs = MAX_CLOSE_MS
  const stopTimer = () => {
    clearTimeout(timer)
    timer = undefined
  }
  const startTimer = () => {
    if (timer) return
    const since = now()
    timer = setTimeout(() => {
      socket.emit(SILENT, since)
      socket.destroy(Object.assign(new Error(`no answer for ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
    }, timeoutMs).unref()
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
  /** Not tried before this time, unless no host is left. */
  rejectedUntil: number
  lastError: Error | null
}

/** The first message of a TLS connection (Postgres manual, message formats: SSLRequest). */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const SSL_ACCEPTED = 0x53
const CONNECT_TIMEOUT_MS = 5_000
const DEFAULT_PORT = 5_432
/** After a server rejected a session, the others are tried first for this time. */
const REJECTION_MS = 1_000

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

const connectTo = async ({ host, port }: HostState, tls: TlsSettings | null): Promise<Socket> => {
  const isPath = host.startsWith('/')
  const options = tls && !isPath ? await readTlsOptions(tls) : null
  const socket = isPath ? createConnection({ path: `${host}/.s.PGSQL.${port}` }) : createConnection({ host, port })
  // Without a listener, an error that arrives between two steps would end the process.
  socket.on('error', () => {})
  const timer = setTimeout(
    () => socket.destroy(toConnectError('CONNECT_TIMEOUT', 'the database server did not respond')),
    CONNECT_TIMEOUT_MS,
  )
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
  setImmediate(() => socket.destroy(error))
  return socket
}

/**
 * Creates the connected sockets of a pool. Of several hosts, the one that last accepted a session is tried first, then the
 * others in order. The driver emits on the socket: `session` when the session can be used, `sqlstate` for each error of the
 * server, and `unfit` if the server rejects the session or is not one that the connection string wants; then the next host
 * gets its turn, also if the server closes the connection before the session.
 */
export const createSocketFactory = (
  connection: Pick<ConnectionString, 'hosts' | 'sessions' | 'tls'>,
  {
    silenceMs,
    sessions,
    now,
  }: { readonly silenceMs: number; readonly sessions: Pick<Sessions, 'add'>; readonly now: () => number },
) => {
  let states: readonly HostState[] | undefined
  let preferred: HostState | undefined

  const toStates = (driver: DriverTarget): readonly HostState[] => {
    const hosts = connection.hosts.length > 0 ? connection.hosts : [{ host: '', port: null }]
    return hosts.map(({ host, port }, index) => ({
      host: host || (driver.host[0] ?? 'localhost'),
      port: port ?? (index === 0 ? driver.port[0] : undefined) ?? DEFAULT_PORT,
      rejectedUntil: 0,
      lastError: null,
    }))
  }

  const prepare = (socket: Socket, state: HostState): Socket => {
    destroyOnSilence(socket, silenceMs, now)
    // A balancer without a healthy server does this. Without an error, the driver would connect again at once, and never stop.
    const rejectClose = () => {
      const error = toConnectError('ECONNRESET', 'the server closed the connection')
      if (!socket.emit('unfit', error)) socket.destroy(error)
    }
    socket.once('end', rejectClose)
    for (const event of ['session', 'sqlstate']) socket.once(event, () => socket.removeListener('end', rejectClose))
    socket.once('session', () => {
      preferred = state
      sessions.add(socket)
    })
    if ((states?.length ?? 0) > 1 || connection.sessions !== 'any') {
      socket.once('unfit', (error?: Error) => {
        state.rejectedUntil = now() + REJECTION_MS
        state.lastError = error ?? toConnectError(NO_WRITABLE_SERVER, 'no database server accepts writes')
        socket.destroy()
      })
    }
    return socket
  }

  return async (driver: DriverTarget): Promise<Socket> => {
    states ??= toStates(driver)
    const ordered = preferred ? [preferred, ...states.filter(state => state !== preferred)] : states
    for (const state of ordered) {
      if (now() < state.rejectedUntil) continue
      try {
        return prepare(await connectTo(state, connection.tls), state)
      } catch (error) {
        state.lastError = error as Error
      }
    }
    // A standby that rejects a session is the better explanation than a server that is down.
    const errors = ordered.map(({ lastError }) => lastError).filter(error => error !== null)
    const unfit = errors.find(error => 'code' in error && error.code === NO_WRITABLE_SERVER)
    return createFailedSocket(unfit ?? errors[0] ?? toConnectError('CONNECT_FAILED', 'no database server'))
  }
}
