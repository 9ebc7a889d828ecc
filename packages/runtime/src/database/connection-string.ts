export interface DatabaseHost {
  /** A name, an address, or the directory of a Unix domain socket. */
  readonly host: string
  /** Null: the driver's default. */
  readonly port: number | null
}

/** How a connection is encrypted, with the meaning of libpq's sslmode. The paths name PEM files. */
export interface TlsSettings {
  /** What of the server's certificate is verified: nothing, its authority, or its authority and the host name. */
  readonly verify: 'none' | 'authority' | 'host'
  /** Null: the authorities that Node trusts. */
  readonly authorityFile: string | null
  readonly client: { readonly certificateFile: string; readonly keyFile: string } | null
}

/** Which servers a session may use, as in libpq. `primary`: no standby. `read-write`: also no read-only database. */
export type SessionTarget = 'any' | 'primary' | 'read-write'

export interface ConnectionString {
  /** In the order of preference. Empty: the driver's default. */
  readonly hosts: readonly DatabaseHost[]
  readonly sessions: SessionTarget
  /** Null: not encrypted. */
  readonly tls: TlsSettings | null
  /** The connection string without what is parsed above. It names the first host only. */
  readonly driverUrl: string
}

const FORM = 'postgres://user:password@host:5432/database'
const URL_PARTS = /^(postgres(?:ql)?:\/\/)(?:([^/?#]*)@)?([^/?#]*)((?:\/[^?#]*)?)(?:\?([^#]*))?$/
const HOST = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*))(?::(\d{1,5}))?$/

/** Parameters of libpq that this service does not have, with the values that change nothing and are therefore accepted. */
const UNSUPPORTED: Readonly<Record<string, readonly string[]>> = {
  channel_binding: ['disable', 'prefer'],
  dbname: [],
  fallback_application_name: [],
  gssdelegation: ['0'],
  gssencmode: ['disable', 'prefer'],
  gsslib: [],
  host: [],
  hostaddr: [],
  keepalives: ['1'],
  keepalives_count: [],
  keepalives_idle: [],
  keepalives_interval: [],
  krbsrvname: [],
  load_balance_hosts: ['disable'],
  max_protocol_version: ['3.0', 'latest'],
  min_protocol_version: ['3.0'],
  passfile: [],
  password: [],
  port: [],
  replication: ['false', 'off', 'no', '0'],
  require_auth: [],
  requirepeer: [],
  requiressl: ['0'],
  service: [],
  servicefile: [],
  ssl_max_protocol_version: [],
  ssl_min_protocol_version: ['TLSv1.2'],
  sslcertmode: ['allow'],
  sslcompression: ['0'],
  sslcrl: [],
  sslcrldir: [],
  sslkeylogfile: [],
  sslnegotiation: ['postgres'],
  sslpassword: [],
  sslsni: ['1'],
  user: [],
}

const isPercentEncoded = (text: string): boolean => {
  try {
    return decodeURIComponent(text) !== null
  } catch {
    return false
  }
}

const parseHost = (text: string): DatabaseHost | null => {
  const [matched, ipv6, name, port] = HOST.exec(text) ?? []
  if (matched === undefined || Number(port ?? 1) > 65_535) return null
  return { host: ipv6 ?? decodeURIComponent(name ?? ''), port: port === undefined ? null : Number(port) }
}

const parseTls = (query: URLSearchParams): TlsSettings | null | { readonly issue: string } => {
  const ssl = query.get('ssl')
  if (ssl !== null && ssl !== 'true')
    return { issue: 'has the parameter ssl; write sslmode=require or sslmode=verify-full' }
  const [authority, certificateFile, keyFile] = ['sslrootcert', 'sslcert', 'sslkey'].map(
    name => query.get(name) || null,
  )
  const isSystem = authority === 'system'
  const mode = query.get('sslmode') ?? (ssl ? 'require' : isSystem ? 'verify-full' : 'disable')
  if (mode === 'allow' || mode === 'prefer') {
    return {
      issue: `has sslmode=${mode}, which protects nothing and is not supported; write verify-full, require or disable`,
    }
  }
  if (!['disable', 'require', 'verify-ca', 'verify-full'].includes(mode)) {
    return { issue: 'has an unknown sslmode; write verify-full, verify-ca, require or disable' }
  }
  if (mode === 'disable') {
    return authority || certificateFile || keyFile
      ? { issue: 'names certificates, but has no sslmode that uses them; add sslmode=verify-full' }
      : null
  }
  if (isSystem && mode !== 'verify-full') return { issue: 'has sslrootcert=system, which needs sslmode=verify-full' }
  if (mode.startsWith('verify') && !authority) {
    return {
      issue: `has sslmode=${mode} without sslrootcert; add sslrootcert=<file of certificates>, or sslrootcert=system for the authorities of this machine with sslmode=verify-full`,
    }
  }
  if ((certificateFile === null) !== (keyFile === null)) return { issue: 'must have sslcert and sslkey, or neither' }
  return {
    // As in libpq: a file of authorities makes `require` verify the authority.
    verify: mode === 'verify-full' ? 'host' : authority ? 'authority' : 'none',
    authorityFile: isSystem ? null : (authority ?? null),
    client: certificateFile && keyFile ? { certificateFile, keyFile } : null,
  }
}

const parseSessions = (query: URLSearchParams, hostCount: number): SessionTarget | { readonly issue: string } => {
  const value = query.get('target_session_attrs') ?? (hostCount > 1 ? 'primary' : 'any')
  if (value === 'any' || value === 'primary' || value === 'read-write') return value
  return { issue: 'has a target_session_attrs without writes or an unknown one; write primary, read-write or any' }
}

const PARSED_PARAMETERS = ['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'target_session_attrs']

/**
 * Parses a URL as libpq does (Postgres manual, section 34.1.1.2), with one exception: with several hosts, the default of
 * target_session_attrs is `primary`, because this service writes. `issue` completes a sentence that begins with the name of
 * the variable. It quotes neither the password nor the hosts.
 */
export const parseConnectionString = (text: string): ConnectionString | { readonly issue: string } => {
  const invalid = { issue: `must be a URL of the form ${FORM}, with special characters percent-encoded` }
  const [matched, scheme, credentials = '', authority = '', path = '', search = ''] = URL_PARTS.exec(text) ?? []
  if (matched === undefined || ![credentials, authority, path].every(isPercentEncoded)) return invalid
  const hosts = authority === '' ? [] : authority.split(',').map(parseHost)
  if (!hosts.every(host => host !== null) || (hosts.length > 1 && hosts.some(({ host }) => host === ''))) return invalid
  const query = new URLSearchParams(search)
  for (const [name, value] of query) {
    const accepted = UNSUPPORTED[name]
    if (accepted && !accepted.includes(value))
      return { issue: `has the parameter ${name}, which is not supported; remove it` }
  }
  const tls = parseTls(query)
  if (tls && 'issue' in tls) return tls
  const sessions = parseSessions(query, hosts.length)
  if (typeof sessions !== 'string') return sessions
  for (const name of [...PARSED_PARAMETERS, ...Object.keys(UNSUPPORTED)]) query.delete(name)
  const rest = query.size > 0 ? `?${query}` : ''
  const user = credentials === '' ? '' : `${credentials}@`
  const [first = ''] = authority.split(',')
  return { hosts, sessions, tls, driverUrl: `${scheme}${user}${first}${path}${rest}` }
}
