import { parseDuration } from './duration.ts'

export interface ConfigFault {
  readonly variable: string
  readonly detail: string
}

export type Env = Readonly<Record<string, string | undefined>>

/** Reads one variable after another and remembers what is wrong, so that every fault is told at once. */
export class EnvReader {
  readonly faults: ConfigFault[] = []
  readonly #env: Env

  constructor(env: Env) {
    this.#env = env
  }

  /** The trimmed value; one that is empty or blank counts as unset. */
  text(variable: string): string | undefined {
    return this.#env[variable]?.trim() || undefined
  }

  /** The trimmed value; unset is a fault, which says what it is to be. */
  required(variable: string, what: string): string {
    const text = this.text(variable)
    if (text === undefined) this.fault(variable, `is required: ${what}`)
    return text ?? ''
  }

  /** An http or https URL without a trailing slash. It is not quoted in a fault: it may hold a password. */
  url(variable: string, fallback?: string): string {
    const text =
      fallback === undefined ? this.required(variable, 'a URL such as https://dns.internal') : this.text(variable)
    if (!text) return fallback ?? ''
    const url = URL.parse(text)
    const isPlain = url && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash
    if (!isPlain) this.fault(variable, 'must be a URL that begins with http:// or https://, without a user or a query')
    return text.replace(/\/+$/, '')
  }

  fault(variable: string, detail: string): void {
    this.faults.push({ variable, detail })
  }

  whole(variable: string, fallback: number, range: { min: number; max: number }): number {
    const text = this.text(variable)
    if (text === undefined) return fallback
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (value >= range.min && value <= range.max) return value
    this.fault(variable, `must be a whole number from ${range.min} to ${range.max}`)
    return fallback
  }

  durationMs(variable: string, fallback: string, range: { min: string; max: string }): number {
    const value = parseDuration(this.text(variable) ?? fallback)
    const [min, max] = [parseDuration(range.min) ?? 0, parseDuration(range.max) ?? 0]
    if (value !== null && value >= min && value <= max) return Math.round(value)
    this.fault(variable, `must be a duration from ${range.min} to ${range.max}, such as ${fallback}`)
    return parseDuration(fallback) ?? 0
  }

  oneOf<Choice extends string>(variable: string, choices: readonly Choice[], fallback: Choice): Choice {
    const text = this.text(variable)?.toLowerCase()
    if (text === undefined) return fallback
    const choice = choices.find(known => known === text)
    if (!choice) this.fault(variable, `must be one of ${choices.join(', ')}`)
    return choice ?? fallback
  }

  /** Items between commas and white space, lower-cased, each once. Separators alone count as unset. */
  list(variable: string): readonly string[] | undefined {
    const items = (this.text(variable) ?? '')
      .toLowerCase()
      .split(/[\s,]+/)
      .filter(Boolean)
    return items.length > 0 ? [...new Set(items)] : undefined
  }
}
