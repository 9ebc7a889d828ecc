import type {
  Commitment,
  Grant,
  Lift,
  NameObservation,
  NameOperation,
  ObservedState,
  RejectedCall,
  Release,
  Renewal,
  Update,
} from '../../src/soak/checks/operations.ts'

/** Converts seconds since a fixed date to milliseconds since the epoch. */
export const at = (seconds: number): number => Date.UTC(2026, 0, 1) + seconds * 1_000

type Times = readonly [start: number, end: number]

const common = ([start, end]: Times, name: string, callId: string) => ({
  name,
  callId,
  attempts: 1,
  start: at(start),
  end: at(end),
})

/** A reservation for ten seconds that starts half a second after the request. */
export const grant = (times: Times, token: string, change: Partial<Grant> = {}): Grant => ({
  kind: 'grant',
  token,
  owner: `owner of ${token}`,
  formerToken: null,
  reservedAt: at(times[0] + 0.5),
  expiresAt: at(times[0] + 10.5),
  ...common(times, 'acme', `reserve-${token}`),
  ...change,
})

export const renewal = (times: Times, token: string, expires: number): Renewal => ({
  kind: 'renewal',
  token,
  expiresAt: at(expires),
  ...common(times, 'acme', `renew-${token}`),
})

export const commitment = (times: Times, token: string, address = '10.0.0.1'): Commitment => ({
  kind: 'commitment',
  token,
  address,
  ...common(times, 'acme', `commit-${token}`),
})

export const update = (times: Times, token: string, address: string, isAnswered = true): Update => ({
  kind: 'update',
  token,
  address,
  isAnswered,
  ...common(times, 'acme', `update-${token}`),
})

export const lift = (times: Times): Lift => ({
  kind: 'lift',
  isAnswered: true,
  ...common(times, 'acme', 'lift'),
})

export const release = (times: Times, token: string | null, isAnswered = true): Release => ({
  kind: 'release',
  token,
  isAnswered,
  ...common(times, 'acme', `release-${token}`),
})

export const rejection = (times: Times, action: RejectedCall['action'], token: string, status = 404): RejectedCall => ({
  kind: 'rejection',
  action: action,
  token,
  status,
  ...common(times, 'acme', `${action}-${token}`),
})

export const observation = (
  [start, end]: Times,
  state: ObservedState | null,
  { isWhole: isCompleteList = false, name = 'acme' }: { readonly isWhole?: boolean; readonly name?: string } = {},
): NameObservation => ({
  source: 'get',
  start: at(start),
  end: at(end),
  states: new Map(isCompleteList && state === null ? [] : [[name, state]]),
  isCompleteList: isCompleteList,
})

export const createReservedState = (token: string): ObservedState => ({
  state: 'reserved',
  owner: `owner of ${token}`,
  address: null,
})
export const createActiveState = (token: string, address = '10.0.0.1'): ObservedState => ({
  state: 'active',
  owner: `owner of ${token}`,
  address,
})

export type Operations = readonly NameOperation[]
