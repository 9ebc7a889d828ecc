import { type DrainLeasesResponse, drainLeasesResponse } from '@pool/contract/lease'
import { expect } from 'vitest'
import { sendWithBindings } from './host.ts'
import { replaceBindings } from './object.ts'

export const drain = async (body: object = {}): Promise<DrainLeasesResponse> => {
  const response = await sendWithBindings({ DRAIN: 'true' }, 'POST', '/leases/drain', { body: JSON.stringify(body) })
  expect(response.status, response.text).toBe(200)
  return drainLeasesResponse.strict().parse(response.json)
}

export const setDraining = (slot: string, isDraining: boolean) =>
  replaceBindings(slot, isDraining ? { DRAIN: 'true' } : {})
