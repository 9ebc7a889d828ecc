import { evictDurableObject } from 'cloudflare:test'
import { describe, expect, test } from 'vitest'
import { GENERATION_JUMP } from '../../src/lease/lease.ts'
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

  test('of a record of another system is empty until the first write, which takes the record over', async () => {
    const slot = freshSlot()
    await putLegacyRecord(slot, { holder: '', acquiredAt: '', expiresAt: '', generation: 6 })
    expect((await readHistory(slot)).transitions).toEqual([])
    await put(slot, 6)
    expect((await readHistory(slot)).transitions).toMatchObject([
      { generation: 6 + GENERATION_JUMP, event: 'acquired', by: 'region-a', from: '', to: 'region-a' },
      { generation: 6, event: 'adopted', by: '', from: '', to: '' },
    ])
  })
})
