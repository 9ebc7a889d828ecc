import {
  type Lease,
  type LeaseHistory,
  type LeaseList,
  type LeaseStatusList,
  lease,
  leaseConflict,
  leaseHistory,
  leaseList,
  leaseStatusList,
  type RenewLeasesResponse,
  renewLeasesResponse,
} from '@pool/contract/lease'
import { type LeaseProblem, leaseProblem } from '@pool/contract/lease-problem'
import { expect } from 'vitest'
import type { ReceivedResponse } from './client.ts'

/** Parse bodies with the contract's schemas. An unknown field fails the test. */
export const parseLease = ({ json }: ReceivedResponse): Lease => lease.strict().parse(json)
export const parseProblem = ({ json }: ReceivedResponse): LeaseProblem => leaseProblem.strict().parse(json)
export const parseList = ({ json }: ReceivedResponse): LeaseList => leaseList.strict().parse(json)
export const parseStatuses = ({ json }: ReceivedResponse): LeaseStatusList => leaseStatusList.strict().parse(json)
export const parseRenewals = ({ json }: ReceivedResponse): RenewLeasesResponse =>
  renewLeasesResponse.strict().parse(json)
export const parseHistory = ({ json }: ReceivedResponse): LeaseHistory => leaseHistory.strict().parse(json)

export const NEVER_WRITTEN: Lease = { holder: '', acquiredAt: '', expiresAt: '', generation: 0 }

/** Expects a response with a lease, its entity tag, its remaining time if it is held, and with 412 the conflict. */
export const expectLease = (response: ReceivedResponse, status: 200 | 412, expected: Partial<Lease>): Lease => {
  expect(response.status, response.text).toBe(status)
  const body = parseLease(response)
  expect(body).toMatchObject(expected)
  expect(response.headers.get('ETag')).toBe(`"${body.generation}"`)
  const remaining = response.headers.get('Lease-Remaining-Ms')
  if (body.holder === '') expect(remaining).toBeNull()
  else expect(remaining).toMatch(/^\d+$/)
  expect(leaseConflict.safeParse(response.headers.get('Lease-Conflict')).success).toBe(status === 412)
  return body
}

/** Expects a pause with a random part: 1 to 5 s. */
export const expectRetryAfter = ({ headers }: ReceivedResponse): void =>
  expect(headers.get('Retry-After')).toMatch(/^[1-5]$/)

/** Expects an error response. */
export const expectProblem = (response: ReceivedResponse, status: number, code: string): LeaseProblem => {
  const actual = { status: response.status, error: parseProblem(response).error }
  expect(actual).toEqual({ status, error: code })
  expect(response.headers.get('Content-Type')).toBe('application/json')
  return parseProblem(response)
}
