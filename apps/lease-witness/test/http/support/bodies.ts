import { type Lease, type LeaseHistory, type LeaseList, lease, leaseHistory, leaseList } from '@pool/contract/lease'
import { type LeaseProblem, leaseProblem } from '@pool/contract/lease-problem'
import { expect } from 'vitest'
import type { ReceivedResponse } from './client.ts'

/** Parse bodies with the contract's schemas. An unknown field fails the test. */
export const parseLease = ({ json }: ReceivedResponse): Lease => lease.strict().parse(json)
export const parseProblem = ({ json }: ReceivedResponse): LeaseProblem => leaseProblem.strict().parse(json)
export const parseList = ({ json }: ReceivedResponse): LeaseList => leaseList.strict().parse(json)
export const parseHistory = ({ json }: ReceivedResponse): LeaseHistory => leaseHistory.strict().parse(json)

export const NEVER_WRITTEN: Lease = { holder: '', acquiredAt: '', expiresAt: '', generation: 0 }

/** Expects a response with a lease and its entity tag. */
export const expectLease = (response: ReceivedResponse, status: 200 | 412, expected: Partial<Lease>): Lease => {
  expect(response.status, response.text).toBe(status)
  const body = parseLease(response)
  expect(body).toMatchObject(expected)
  expect(response.headers.get('ETag')).toBe(`"${body.generation}"`)
  return body
}

/** Expects an error response. */
export const expectProblem = (response: ReceivedResponse, status: number, code: string): LeaseProblem => {
  const actual = { status: response.status, error: parseProblem(response).error }
  expect(actual).toEqual({ status, error: code })
  expect(response.headers.get('Content-Type')).toBe('application/json')
  return parseProblem(response)
}
