import { describe, expect, test } from 'vitest'
import { expectProblem, parseHistory } from './support/bodies.ts'
import { FINGERPRINT, freshSlot, put, release, send } from './support/client.ts'
import { fakeClock, iso } from './support/clock.ts'

const historyPath = (slot: string): string => `/history/${encodeURIComponent(slot)}`
const readHistory = async (slot: string) => parseHistory(await send('GET', historyPath(slot)))

describe('GET /history/<slot>', () => {
  test('lists the transitions, newest first: by, at, from, to, generation', async () => {
    using clock = fakeClock()
    const slot = freshSlot()
    const at: string[] = []
    const recordTime = () => at.push(iso(clock.now()))
    recordTime()
    await put(slot, 0)
    clock.advance(30_000)
    recordTime()
    await put(slot, 1, { holder: 'region-b' })
    clock.advance(5_000)
    recordTime()
    await release(slot, 2, 'region-b')
    clock.advance(1)
    recordTime()
    await put(slot, 3)
    clock.advance(30_000)
    recordTime()
    await put(slot, 4)
    const token = FINGERPRINT
    expect(await readHistory(slot)).toEqual({
      slot,
      transitions: [
        { generation: 5, at: at[4], event: 'acquired', by: 'region-a', from: 'region-a', to: 'region-a', token },
        { generation: 4, at: at[3], event: 'acquired', by: 'region-a', from: '', to: 'region-a', token },
        { generation: 3, at: at[2], event: 'released', by: 'region-b', from: 'region-b', to: '', token },
        { generation: 2, at: at[1], event: 'acquired', by: 'region-b', from: 'region-a', to: 'region-b', token },
        { generation: 1, at: at[0], event: 'acquired', by: 'region-a', from: '', to: 'region-a', token },
      ],
    })
  })

  test('does not contain renewals and rejected writes', async () => {
    const slot = freshSlot()
    await put(slot, 0)
    await put(slot, 1, { op: 'renew' })
    await put(slot, 2)
    await put(slot, 3, { holder: 'region-b' })
    await put(slot, 1)
    await release(slot, 3, 'region-b')
    expect((await readHistory(slot)).transitions.map(({ generation }) => generation)).toEqual([1])
  })

  test('contains the last 50 transitions', async () => {
    const slot = freshSlot()
    for (let round = 0; round < 26; round++) {
      await put(slot, round * 2)
      await release(slot, round * 2 + 1)
    }
    const { transitions } = await readHistory(slot)
    expect(transitions.map(({ generation }) => generation)).toEqual(Array.from({ length: 50 }, (_, i) => 52 - i))
  })

  test('of a slot that was never written: 404', async () => {
    expectProblem(await send('GET', historyPath(freshSlot())), 404, 'not-found')
  })
})
