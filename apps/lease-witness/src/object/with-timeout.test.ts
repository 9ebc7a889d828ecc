import { expect, test } from 'vitest'
import { within } from './with-timeout.ts'

test('work that ends in time gives what it gives', async () => {
  expect(await within(60_000, Promise.resolve('done'))).toBe('done')
})

test('work that fails in time fails as it does', async () => {
  await expect(within(60_000, Promise.reject(new Error('broken')))).rejects.toThrow('broken')
})

test('work that does not end in time is a failure', async () => {
  await expect(within(5, new Promise(() => {}))).rejects.toThrow('no answer within 5 ms')
})
