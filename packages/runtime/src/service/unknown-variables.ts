import { editDistance, findNearest } from '../spelling.ts'

// Also for a worker: without a module of Node.

export interface UnknownVariable {
  readonly variable: string
  /** Completes a sentence that begins with the variable. */
  readonly detail: string
}

export interface KnownVariables {
  /** The beginnings of names that only this service uses. */
  readonly prefixes: readonly string[]
  readonly names: readonly string[]
}

/** A name without one of the prefixes counts as misspelt only if it differs this little from a long known one. */
const MAX_EDITS = 3
const MAX_EDITED_SHARE = 0.25
const MIN_LENGTH = 10

/**
 * Kubernetes describes each Service of the namespace in variables that begin with its name: a Service pdm-db gives
 * PDM_DB_SERVICE_HOST, PDM_DB_PORT_5432_TCP_ADDR and more.
 */
const toServiceLink = (name: string): string | null => /^(.+)_SERVICE_HOST$/.exec(name)?.[1] ?? null

const isNear = (edits: number, candidate: string): boolean =>
  edits <= MAX_EDITS && edits < MAX_EDITED_SHARE * candidate.length

const isMisspelt = (name: string, known: readonly string[]): boolean =>
  known.some(
    candidate =>
      candidate.length >= MIN_LENGTH &&
      Math.abs(candidate.length - name.length) <= MAX_EDITS &&
      isNear(editDistance(name, candidate), candidate),
  )

/** A suggestion that differs in more than half of the name would mislead. */
const suggest = (name: string, known: readonly string[]): string | null => {
  const nearest = findNearest(name, known)
  return nearest !== undefined && 2 * editDistance(name, nearest) <= Math.max(name.length, nearest.length)
    ? nearest
    : null
}

const describe = (nearest: string | null): string =>
  nearest === null
    ? 'is not a variable of this service; remove it, or correct its name'
    : `is not a variable of this service; did you mean ${nearest}?`

/** The variables that are set, look like those of this service, but do not exist. */
export const findUnknownVariables = (
  env: Readonly<Record<string, string | undefined>>,
  { prefixes, names }: KnownVariables,
): readonly UnknownVariable[] => {
  const known = new Set(names)
  const serviceLinks = Object.keys(env).flatMap(name => toServiceLink(name) ?? [])
  const isServiceLink = (name: string): boolean =>
    serviceLinks.some(
      service => name.startsWith(`${service}_SERVICE_`) || new RegExp(`^${service}_PORT(?:_|$)`).test(name),
    )
  return Object.keys(env)
    .filter(name => env[name]?.trim() && !known.has(name) && !isServiceLink(name))
    .filter(name => prefixes.some(prefix => name.startsWith(prefix)) || isMisspelt(name, names))
    .sort()
    .map(variable => ({ variable, detail: describe(suggest(variable, names)) }))
}
