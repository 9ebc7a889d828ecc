import { type Lease, type LeaseHistory, type LeaseList, lease, leaseHistory, leaseList } from '@pool/contract/lease'
import { type LeaseProblem, leaseProblem } from '@pool/contract/lease-problem'
import { expect } from 'vitest'
import type { ReceivedResponse } from './client.ts'

/** Bodies, read as a client of the contract reads them: what the schemas do not know fails the test. */
export const parseLease = ({ json }: ReceivedResponse): Lease => lease.strict().parse(json)
export const parseProblem = ({ json }: ReceivedResponse): LeaseProblem => leaseProblem.strict().parse(json)
export const parseList = ({ json }: ReceivedResponse): LeaseList => leaseList.strict().parse(json)
export const parseHistory = ({ json }: ReceivedResponse): LeaseHistory => leaseHistory.strict().parse(json)

export const NEVER_WRITTEN: Lease = { holder: '', acquiredAt: '', expiresAt: '', generation: 0 }

/** An answer that shows a lease: its body, and the entity tag that belongs to it. */
export const expectLease = (answer: ReceivedResponse, status: 200 | 412, shows: Partial<Lease>): Lease => {
  expect(answer.status, answer.text).toBe(status)
  const body = parseLease(answer)
  expect(body).toMatchObject(shows)
  expect(answer.headers.get('ETag')).toBe(`"${body.generation}"`)
  return body
}

/** A refusal: its status, its code, and a sentence that a person can act on. */
export const expectProblem = (answer: ReceivedResponse, status: number, code: string): LeaseProblem => {
  const told = { status: answer.status, error: parseProblem(answer).error }
  expect(told).toEqual({ status, error: code })
  expect(answer.headers.get('Content-Type')).toBe('application/json')
  return parseProblem(answer)
}
