import type { NameAction, NameDetails } from '@pool/contract'

type NameStatus = NameDetails['state']

/** The state of the name after an action that takes effect. Only the release of an active name starts a cool-off. */
export const toStateAfter = (state: NameStatus, action: NameAction, coolOffMs: number): NameStatus => {
  if (action === 'update') return state
  return action === 'release' && state === 'active' && coolOffMs > 0 ? 'cooling-off' : 'free'
}
