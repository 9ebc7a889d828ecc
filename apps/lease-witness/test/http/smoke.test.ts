import { expect, test } from 'vitest'
import { freshSlot, get, put, release } from './support/client.ts'

test('a lease is acquired, read and released', async () => {
  const slot = freshSlot()
  expect((await get(slot)).status).toBe(404)
  expect((await put(slot, 0)).json).toMatchObject({ holder: 'region-a', generation: 1 })
  expect((await release(slot, 1)).status).toBe(204)
  expect((await get(slot)).json).toEqual({ holder: '', acquiredAt: '', expiresAt: '', generation: 2 })
})
