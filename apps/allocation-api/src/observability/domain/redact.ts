import { redacted } from '@pool/contract'

/** What may stand in an error's text although it must not be told: credentials in a URL, tokens, keys in a query. */
const secrets: readonly [RegExp, string][] = [
  [/\/\/[^/\s]*@/g, `//${redacted}@`],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, redacted],
  [/\b(bearer) +\S+/gi, `$1 ${redacted}`],
  [/([?&](?:key|token|secret|password|signature)=)[^&\s]*/gi, `$1${redacted}`],
]

export const redact = (text: string): string =>
  secrets.reduce((clean, [pattern, mask]) => clean.replace(pattern, mask), text)

export interface ErrorDescription {
  readonly name: string
  readonly code?: string
  readonly constraint?: string
  readonly message?: string
  readonly stack?: string
}

const textOf = (error: Error, field: string): string | undefined => {
  const value: unknown = Reflect.get(error, field)
  return typeof value === 'string' ? value : undefined
}

/**
 * An error as a log line may show it. Of an error that Postgres reports (it has a `severity`) no text is kept: it quotes
 * the values of the statement. Its SQLSTATE and the name of the constraint say what happened.
 */
export const describeError = (error: unknown): ErrorDescription => {
  if (!(error instanceof Error)) return { name: 'NotAnError', message: redact(String(error)) }
  const code = textOf(error, 'code')
  const constraint = textOf(error, 'constraint_name')
  const fromDatabase = textOf(error, 'severity') !== undefined
  const frames = (error.stack ?? '').split('\n').filter(line => line.startsWith('    at '))
  return {
    name: error.name,
    ...(code ? { code } : {}),
    ...(constraint ? { constraint } : {}),
    ...(fromDatabase ? {} : { message: redact(error.message) }),
    stack: frames.slice(0, 12).join('\n'),
  }
}
