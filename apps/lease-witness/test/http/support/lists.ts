import type { LeaseList } from '@pool/contract/lease'
import { expect } from 'vitest'
import { parseLease, parseList } from './bodies.ts'
import { put, send } from './client.ts'
import { getHost } from './host.ts'

export const freshPrefix = (): string => `list/${crypto.randomUUID()}/`

export const list = async (query: Readonly<Record<string, string>>): Promise<LeaseList> => {
  const response = await send('GET', `/leases?${new URLSearchParams(query)}`)
  expect(response.status, response.text).toBe(200)
  return parseList(response)
}

/** Acquires a slot and writes its copy. */
export const acquireWithCopy = async (slot: string) => {
  const lease = parseLease(await put(slot, 0))
  await getHost().writeCopy(slot)
  return { slot, ...lease }
}
