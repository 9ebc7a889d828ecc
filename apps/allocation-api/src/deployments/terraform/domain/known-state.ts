import type { KnownState } from '../../domain/types.ts'

const CHECK_PLACE = 'Check PDM_TERRAFORM_BACKEND and PDM_DEPLOYMENTS_DIR, or restore the state, then retry.'

/**
 * Why `found` cannot be the state that earlier runs wrote, as sentences; null if it can. It may be newer: a run that was
 * killed did not report what it wrote. `found` is null if there is no state, `known` if no run has started to write one.
 */
export const findStateMismatch = (found: KnownState | null, known: KnownState | null): string | null => {
  if (known === null) return null
  if (found === null) {
    return `The state of this deployment is missing: earlier runs wrote it, but its backend has none at this place. Nothing was changed. ${CHECK_PLACE}`
  }
  if (found.lineage !== known.lineage) {
    return `The backend has another state than the one that earlier runs of this deployment wrote (Terraform lineage ${found.lineage} instead of ${known.lineage}). Nothing was changed. ${CHECK_PLACE}`
  }
  if (found.serial >= known.serial) return null
  return `The state is older than the one that earlier runs of this deployment wrote (serial ${found.serial}, but ${known.serial} was written). Nothing was changed. Restore its newest version, then retry.`
}

/** A state without resources. With it in its place, the first apply has a state to compare with after a crash. */
export const toInitialState = (lineage: string): string =>
  JSON.stringify({ version: 4, serial: 1, lineage, outputs: {}, resources: [] })
