/** Why there is no whole answer. */
export type FailureCause =
  | 'lookup'
  | 'refused'
  | 'unreachable'
  | 'reset'
  | 'tls'
  | 'not-http'
  | 'half-a-body'
  | 'too-large'
  | 'deadline'
  | 'given-up'

/** By the codes of the system (errno(3), getaddrinfo(3)), of OpenSSL as Node names them, and of Node's HTTP parser. */
const causes: readonly (readonly [code: RegExp, cause: FailureCause])[] = [
  [/^(?:ENOTFOUND|EAI_[A-Z]+)$/, 'lookup'],
  [/^ECONNREFUSED$/, 'refused'],
  [/^(?:ECONNRESET|EPIPE|ECONNABORTED)$/, 'reset'],
  [/^HPE_/, 'not-http'],
  [
    /^(?:ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)|^(?:EPROTO|INVALID_CA|HOSTNAME_MISMATCH)$/,
    'tls',
  ],
]

/** Of an error of `node:https` before there was an answer. */
export const causeOf = (error: unknown): FailureCause => {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  return causes.find(([pattern]) => pattern.test(code))?.[1] ?? 'unreachable'
}

const sentences: Readonly<Record<FailureCause, string>> = {
  lookup: 'its name could not be looked up',
  refused: 'it refuses connections',
  unreachable: 'there is no connection to it',
  reset: 'it ended the connection without an answer',
  tls: 'no secure connection could be made with it (TLS or its certificate)',
  'not-http': 'what it answered is not HTTP',
  'half-a-body': 'its answer broke off',
  'too-large': 'its answer is too large',
  deadline: 'it did not answer in time',
  'given-up': 'the caller went away',
}

/** For a person. `host` is one that this service is configured with. */
export const failureMessage = (host: string, cause: FailureCause): string =>
  `${host} could not be asked: ${sentences[cause]}. The credentials were not checked; they may be good. Try again later.`
