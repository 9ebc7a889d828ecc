import { type Lease, type LeaseHistory, type LeaseList, lease, leaseHistory, leaseList } from '@pool/contract/lease'
import { type LeaseProblem, leaseProblem } from '@pool/contract/lease-problem'
import { expect } from 'vitest'
import type { Asked } from './ask.ts'

/** Bodies, read as a client of the contract reads them: what the schemas do not know fails the test. */
export const leaseIn = ({ json }: Asked): Lease => lease.strict().parse(json)
export const problemIn = ({ json }: Asked): LeaseProblem => leaseProblem.strict().parse(json)
export const listIn = ({ json }: Asked): LeaseList => leaseList.strict().parse(json)
export const historyIn = ({ json }: Asked): LeaseHistory => leaseHistory.strict().parse(json)

export const NEVER_WRITTEN: Lease = { holder: '', acquiredAt: '', expiresAt: '', generation: 0 }

/** An answer that shows a lease: its body, and the entity tag that belongs to it. */
export const expectLease = (answer: Asked, status: 200 | 412, shows: Partial<Lease>): Lease => {
  expect(answer.status, answer.text).toBe(status)
  const body = leaseIn(answer)
  expect(body).toMatchObject(shows)
  expect(answer.headers.get('ETag')).toBe(`"${body.generation}"`)
  return body
}

/** A refusal: its status, its code, and a sentence that a person can act on. */
export const expectProblem = (answer: Asked, status: number, code: string): LeaseProblem => {
  const told = { status: answer.status, error: problemIn(answer).error }
  expect(told).toEqual({ status, error: code })
  expect(answer.headers.get('Content-Type')).toBe('application/json')
  return problemIn(answer)
}
