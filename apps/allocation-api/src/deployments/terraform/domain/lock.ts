import { isJsonObject } from '../../../lib/json.ts'

/** What a state lock looks like from another process. */
export type LockProbe =
  | { readonly kind: 'not-locked' }
  | { readonly kind: 'locked'; readonly id: string }
  /** The state is locked and the backend does not show by which lock, or it cannot be reached. */
  | { readonly kind: 'unknown' }

/**
 * A command that takes the lock and releases it, and changes nothing: the root module has no such resource. It needs no
 * input variables.
 */
export const PROBE = ['untaint', '-no-color', '-allow-missing', '-lock-timeout=0s', 'terraform_data.none'] as const

/** What the probe's own lock is for. */
const PROBE_OPERATION = 'untaint'

/** The error of PROBE: https://developer.hashicorp.com/terraform/language/state/locking */
export const parseProbe = (exitCode: number | null, output: string): LockProbe => {
  if (exitCode === 0) return { kind: 'not-locked' }
  const named = /already locked:\s+ID=(\S+)/.exec(output)?.[1]
  if (named) return { kind: 'locked', id: named }
  const id = /^\s*ID:[ \t]+(\S+)/m.exec(output)?.[1]
  const operation = /^\s*Operation:[ \t]+(\S+)/m.exec(output)?.[1]
  // Some backends show the lock that could not be taken instead of the one that exists.
  return id && operation && operation !== PROBE_OPERATION ? { kind: 'locked', id } : { kind: 'unknown' }
}

/** The ID in the file that the `local` backend keeps beside a locked state; null if it has another format. */
export const parseLockFile = (text: string): string | null => {
  try {
    const info = JSON.parse(text)
    return isJsonObject(info) && typeof info.ID === 'string' && info.ID !== '' ? info.ID : null
  } catch {
    return null
  }
}

/** Whether this line of the machine-readable UI shows that the command holds the lock: it has read the state. */
export const isProofOfLock = (line: string): boolean =>
  /^\{.*"type":"(?:refresh_start|refresh_complete|resource_drift|planned_change|change_summary|apply_start|apply_progress|apply_complete|provision_\w+)"/.test(
    line,
  )
