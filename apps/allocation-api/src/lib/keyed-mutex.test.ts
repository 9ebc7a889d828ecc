import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTurns } from './keyed-mutex.ts'

const never = new AbortController().signal

test('one at a time for each key, in order; whoever gives up lets nobody overtake', async () => {
  const turns = createTurns()
  const order: string[] = []
  const give = await turns.take('a', never)
  const impatient = new AbortController()
  const second = turns.take('a', impatient.signal).then(turn => order.push(turn ? 'second' : 'second gave up'))
  const third = turns.take('a', never).then(turn => {
    order.push('third')
    turn?.()
  })
  expect(await turns.take('b', never)).toBeTypeOf('function')
  impatient.abort()
  await second
  await setImmediate()
  expect(order).toEqual(['second gave up'])
  give?.()
  await third
  expect(order).toEqual(['second gave up', 'third'])
  expect(await turns.take('a', AbortSignal.abort())).toBeNull()
  expect(await turns.take('a', never)).toBeTypeOf('function')
})
