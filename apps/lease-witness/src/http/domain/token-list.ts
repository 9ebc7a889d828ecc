/** The tokens of BEARER_TOKENS_CSV, trimmed and without empty entries. */
export const parseTokenList = (csv: string | undefined): string[] =>
  (csv ?? '')
    .split(',')
    .map(token => token.trim())
    .filter(token => token !== '')
