import { isIP } from 'node:net'

/** Milliseconds per unit of Go's `time.ParseDuration`, whose syntax the environment uses. */
const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  '\u00b5s': 1e-3, // MICRO SIGN
  '\u03bcs': 1e-3, // GREEK SMALL LETTER MU
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}

/** Milliseconds of `90s`, `10m`, `1h30m`, `+1.5h` or `0`; null if the text is not a duration, or a negative one. */
export const parseDuration = (text: string): number | null => {
  const unsigned = text.replace(/^\+/, '')
  if (unsigned === '0') return 0
  const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y
  let total = 0
  while (part.lastIndex < unsigned.length) {
    const match = part.exec(unsigned)
    if (!match) return null
    total += Number(match[1]) * (unitMs[match[2] ?? ''] ?? Number.NaN)
  }
  return unsigned === '' ? null : total
}

export interface ConfigIssue {
  readonly variable: string
  /** Completes a sentence that begins with the variable. It quotes no secret. */
  readonly detail: string
}

/** The start failed, because the configuration does not fit what the database holds. */
export class ConfigIssuesError extends Error {
  readonly issues: readonly ConfigIssue[]

  constructor(issues: readonly ConfigIssue[]) {
    super(issues.map(({ variable, detail }) => `${variable} ${detail}`).join('; '))
    this.name = 'ConfigIssuesError'
    this.issues = issues
  }
}

export type Env = Readonly<Record<string, string | undefined>>

/** The variable that names the file of a secret, as in the images of Postgres and MariaDB. */
export const toFileVariable = (variable: string): string => `${variable}_FILE`

/** Reads variables and collects what is wrong with them, so that one start reports every issue. */
export class EnvReader {
  readonly issues: ConfigIssue[] = []
  /** The variables that were read. */
  readonly names = new Set<string>()
  readonly #env: Env

  constructor(env: Env) {
    this.#env = env
  }

  /** The trimmed value. An empty or blank variable counts as unset. */
  text(variable: string): string | undefined {
    this.names.add(variable)
    return this.#env[variable]?.trim() || undefined
  }

  /** The trimmed value. `description` says what an unset variable must hold. */
  required(variable: string, description: string): string {
    const text = this.text(variable)
    if (text === undefined) this.addIssue(variable, `is required: ${description}`)
    return text ?? ''
  }

  /** An http or https URL without a trailing slash. No issue quotes it, because it may hold a password. */
  url(variable: string): string {
    const text = this.required(variable, 'a URL such as https://dns.internal')
    if (!text) return ''
    const url = URL.parse(text)
    const isPlain = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash
    if (!isPlain) {
      this.addIssue(variable, 'must be a URL that begins with http:// or https://, without a user or a query')
    }
    return text.replace(/\/+$/, '')
  }

  /** An IP address; null if the variable is not set. */
  address(variable: string): string | null {
    const text = this.text(variable)
    if (text === undefined) return null
    if (isIP(text) === 0) this.addIssue(variable, `"${text}" is not an IP address such as 127.0.0.1 or ::1`)
    return text
  }

  addIssue(variable: string, detail: string): void {
    this.issues.push({ variable, detail })
  }

  integer(variable: string, fallback: number, range: { min: number; max: number }): number {
    const text = this.text(variable)
    if (text === undefined) return fallback
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (value >= range.min && value <= range.max) return value
    this.addIssue(variable, `must be a whole number from ${range.min} to ${range.max}`)
    return fallback
  }

  durationMs(variable: string, fallback: string, range: { min: string; max: string }): number {
    const value = parseDuration(this.text(variable) ?? fallback)
    const [min, max] = [parseDuration(range.min) ?? 0, parseDuration(range.max) ?? 0]
    if (value !== null && value >= min && value <= max) return Math.round(value)
    this.addIssue(variable, `must be a duration from ${range.min} to ${range.max}, such as ${fallback}`)
    return parseDuration(fallback) ?? 0
  }

  /** As `durationMs`, but null if the variable is not set. */
  optionalDurationMs(variable: string, range: { min: string; max: string }): number | null {
    return this.text(variable) === undefined ? null : this.durationMs(variable, range.min, range)
  }

  /** Case does not matter. */
  oneOf<Choice extends string>(variable: string, choices: readonly Choice[], fallback: Choice): Choice {
    const text = this.text(variable)?.toLowerCase()
    if (text === undefined) return fallback
    const choice = choices.find(known => known === text)
    if (!choice) this.addIssue(variable, `must be one of ${choices.join(', ')}`)
    return choice ?? fallback
  }

  /** Lower-cased items without duplicates, separated by commas or white space. Separators alone count as unset. */
  list(variable: string): readonly string[] | undefined {
    const items = (this.text(variable) ?? '')
      .toLowerCase()
      .split(/[\s,]+/)
      .filter(Boolean)
    return items.length > 0 ? [...new Set(items)] : undefined
  }
}
