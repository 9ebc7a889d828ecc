import type {
  Commitment,
  Grant,
  NameObservation,
  NameOperation,
  ObservedState,
  RejectedCall,
  Release,
  Renewal,
} from '../../src/soak/checks/operations.ts'

/** Seconds of a day, as the checks have times. */
export const at = (seconds: number): number => Date.UTC(2026, 0, 1) + seconds * 1_000

type Times = readonly [start: number, end: number]

const common = ([start, end]: Times, name: string, idempotencyKey: string) => ({
  name,
  idempotencyKey,
  attempts: 1,
  start: at(start),
  end: at(end),
})

/** Reserved half a second after it was asked for, for ten seconds. */
export const grant = (times: Times, token: string, change: Partial<Grant> = {}): Grant => ({
  kind: 'grant',
  token,
  owner: `owner of ${token}`,
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

export const release = (times: Times, token: string | null, isAnswered = true): Release => ({
  kind: 'release',
  token,
  isAnswered,
  ...common(times, 'acme', `release-${token}`),
})

export const rejections = (times: Times, verb: RejectedCall['action'], token: string, status = 404): RejectedCall => ({
  kind: 'rejection',
  action: verb,
  token,
  status,
  ...common(times, 'acme', `${verb}-${token}`),
})

export const reading = (
  [start, end]: Times,
  seen: ObservedState | null,
  { isWhole = false, name = 'acme' }: { readonly isWhole?: boolean; readonly name?: string } = {},
): NameObservation => ({
  source: 'get',
  start: at(start),
  end: at(end),
  states: new Map(isWhole && seen === null ? [] : [[name, seen]]),
  isCompleteList: isWhole,
})

export const reservedOf = (token: string): ObservedState => ({
  state: 'reserved',
  owner: `owner of ${token}`,
  address: null,
})
export const activeOf = (token: string, address = '10.0.0.1'): ObservedState => ({
  state: 'active',
  owner: `owner of ${token}`,
  address,
})

export type Operations = readonly NameOperation[]
