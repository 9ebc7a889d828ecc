import { evictDurableObject } from 'cloudflare:test'
import { describe, expect, test } from 'vitest'
import { parseHistory } from '../http/support/bodies.ts'
import { freshSlot, put, send } from '../http/support/client.ts'
import { putLegacyRecord } from './support/kv.ts'
import { slotObject } from './support/object.ts'

const readHistory = async (slot: string) => parseHistory(await send('GET', `/history/${encodeURIComponent(slot)}`))

describe('the history of a slot', () => {
  test('survives an eviction of the object', async () => {
    const slot = freshSlot()
    await put(slot, 0)
    const before = await readHistory(slot)
    await evictDurableObject(slotObject(slot))
    expect(await readHistory(slot)).toEqual(before)
  })

  test('of an imported record that was released', async () => {
    const slot = freshSlot()
    await putLegacyRecord(slot, { holder: '', acquiredAt: '', expiresAt: '', generation: 6 })
    expect((await readHistory(slot)).transitions).toMatchObject([{ generation: 6, event: 'adopted', by: '', to: '' }])
  })
})
