import { redacted } from '@pool/contract'

/** Secrets that the text of an error may contain: credentials in a URL, tokens, keys in a query. */
const SECRET_PATTERNS: readonly [RegExp, string][] = [
  [/\/\/[^/\s]*@/g, `//${redacted}@`],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, redacted],
  [/\b(bearer) +\S+/gi, `$1 ${redacted}`],
  [/([?&](?:key|token|secret|password|signature)=)[^&\s]*/gi, `$1${redacted}`],
]

export const redact = (text: string): string =>
  SECRET_PATTERNS.reduce((clean, [pattern, mask]) => clean.replace(pattern, mask), text)

export interface ErrorDescription {
  readonly name: string
  readonly code?: string
  readonly constraint?: string
  readonly message?: string
  readonly stack?: string
}

const getText = (error: Error, field: string): string | undefined => {
  const value: unknown = Reflect.get(error, field)
  return typeof value === 'string' ? value : undefined
}

/**
 * An error for a log line. The text of an error from Postgres (it has a `severity`) is omitted, because it quotes values
 * of the statement. Its SQLSTATE and the name of the constraint identify the cause.
 */
export const describeError = (error: unknown): ErrorDescription => {
  if (!(error instanceof Error)) return { name: 'NotAnError', message: redact(String(error)) }
  const code = getText(error, 'code')
  const constraint = getText(error, 'constraint_name')
  const isFromDatabase = getText(error, 'severity') !== undefined
  const frames = (error.stack ?? '').split('\n').filter(line => line.startsWith('    at '))
  return {
    name: error.name,
    ...(code ? { code } : {}),
    ...(constraint ? { constraint } : {}),
    ...(isFromDatabase ? {} : { message: redact(error.message) }),
    stack: frames.slice(0, 12).join('\n'),
  }
}
