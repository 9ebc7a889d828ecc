import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import { createLeaseService } from '../../src/object/client.ts'
import { expectLease, expectProblem } from '../http/support/bodies.ts'
import { freshSlot, get, release } from '../http/support/client.ts'
import { held, seed, waitForWaiters } from '../http/support/slots.ts'
import { slotObject } from './support/object.ts'

const WAIT = { condition: { kind: 'changed', known: [4] }, known: [4], maxMs: 30_000 } as const

const heldSlot = async (): Promise<string> => {
  const slot = freshSlot()
  await seed(slot, held({ generation: 4 }))
  return slot
}

test('the end of one client ends its own wait only', async () => {
  const slot = await heldSlot()
  const leases = createLeaseService(env)
  const wait = (signal: AbortSignal) => leases.wait({ slot, encoded: slot }, { ...WAIT, signal })
  const controller = new AbortController()
  const [cancelled, remaining] = [wait(controller.signal), wait(new AbortController().signal)]
  await waitForWaiters(slot, 2)
  controller.abort()
  await waitForWaiters(slot, 1)
  expect((await cancelled).kind).toBe('absent')
  await release(slot, 4)
  expect(await remaining).toMatchObject({ kind: 'lease', lease: { generation: 5 } })
  await waitForWaiters(slot, 0)
})

test('a slot accepts at most 2,000 waiting readers: 503, and the others continue', async () => {
  const slot = await heldSlot()
  const address = { slot, encoded: slot }
  const waits = await runInDurableObject(slotObject(slot), instance =>
    Array.from({ length: 2_000 }, (_, i) => ({
      ended: instance.wait(address, `wait-${i}`, WAIT),
    })),
  )
  expect(await slotObject(slot).waiterCount()).toBe(2_000)
  const response = await get(slot, { 'If-None-Match': '"4"', Prefer: 'wait=30' })
  expectProblem(response, 503, 'overloaded')
  expect(response.headers.get('Preference-Applied')).toBeNull()
  expect(response.headers.get('Retry-After')).toBe('1')
  expectLease(await get(slot), 200, { generation: 4 })
  expect(await slotObject(slot).waiterCount()).toBe(2_000)
  await release(slot, 4)
  const kinds = await runInDurableObject(slotObject(slot), async () =>
    Promise.all(waits.map(async ({ ended }) => (await ended).kind)),
  )
  expect(new Set(kinds)).toEqual(new Set(['lease']))
  expect(await slotObject(slot).waiterCount()).toBe(0)
})
