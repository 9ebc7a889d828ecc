/** A shorter token can be guessed, and is rejected. */
export const MIN_TOKEN_LENGTH = 16

export const isShortToken = (token: string): boolean => token.length < MIN_TOKEN_LENGTH

/** The tokens of BEARER_TOKENS_CSV, trimmed and without empty entries. */
export const parseTokenList = (csv: string | undefined): string[] =>
  (csv ?? '')
    .split(',')
    .map(token => token.trim())
    .filter(token => token !== '')

export const listAcceptedTokens = (csv: string | undefined): string[] =>
  parseTokenList(csv).filter(token => !isShortToken(token))
