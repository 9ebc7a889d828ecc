import { invalidAddressDetail, isLoadBalancerAddress, type NameAction, type NameDetails } from '@pool/contract'

type NameStatus = NameDetails['state']

/** Why an action has no effect on the name. The kind is an error code. */
export interface ActionObstacle {
  readonly kind: 'not-found' | 'not-active' | 'missing-lb-ip' | 'invalid-lb-ip'
  readonly detail: string
}

export interface NewAddress {
  readonly address: string | undefined
  readonly acceptsLoopback: boolean
}

/** In the order in which the action itself decides. Null: it would take effect. */
export const findActionObstacle = (
  state: NameStatus,
  action: NameAction,
  { address, acceptsLoopback }: NewAddress,
): ActionObstacle | null => {
  if (action === 'lift-cool-off') {
    return state === 'cooling-off' ? null : { kind: 'not-found', detail: 'The name is not in a cool-off.' }
  }
  if (action === 'update') {
    if (address === undefined) return { kind: 'missing-lb-ip', detail: 'loadBalancerIP is required: the new address.' }
    if (!isLoadBalancerAddress(address, acceptsLoopback)) return { kind: 'invalid-lb-ip', detail: invalidAddressDetail }
  }
  if (state !== 'reserved' && state !== 'active') {
    return { kind: 'not-found', detail: 'The name is neither reserved nor active.' }
  }
  return action === 'update' && state === 'reserved'
    ? { kind: 'not-active', detail: 'The name is only reserved; commit it first.' }
    : null
}

/** The state of the name after an action that takes effect. Only the release of an active name starts a cool-off. */
export const toStateAfter = (state: NameStatus, action: NameAction, coolOffMs: number): NameStatus => {
  if (action === 'update') return state
  return action === 'release' && state === 'active' && coolOffMs > 0 ? 'cooling-off' : 'free'
}
