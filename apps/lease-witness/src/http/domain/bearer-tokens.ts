/** The tokens of a comma-separated list, trimmed; empty entries are none. */
export const tokensOf = (csv: string | undefined): string[] =>
  (csv ?? '')
    .split(',')
    .map(token => token.trim())
    .filter(token => token !== '')

/** The token of an `Authorization` header (RFC 6750 section 2.1); the scheme's case is not significant. */
export const bearerToken = (authorization: string | undefined): string | undefined =>
  /^bearer +([^ ]+) *$/i.exec(authorization ?? '')?.[1]
