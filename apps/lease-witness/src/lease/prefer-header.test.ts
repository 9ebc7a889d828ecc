import { expect, test } from 'vitest'
import { LONGEST_WAIT, waitSeconds } from './prefer-header.ts'

test.each<readonly [prefer: string | undefined, seconds: number]>([
  [undefined, 0],
  ['', 0],
  ['wait=1', 1],
  ['wait=30', 30],
  ['wait=60', 60],
  ['wait=61', 60],
  ['wait=999999999', 60],
  ['wait=0', 0],
  ['wait=007', 7],
  ['WAIT=5', 5],
  ['Wait=5', 5],
  [' wait = 5 ', 5],
  ['wait="5"', 5],
  ['wait=5; why=x', 5],
  ['respond-async, wait=5', 5],
  ['wait=5, respond-async', 5],
  ['wait=5, wait=9', 5],
  ['wait, wait=9', 0],
  ['wait=x, wait=9', 0],
  ['foo="a, wait=9", wait=5', 5],
  ['foo="a\\", wait=9", wait=5', 5],
  ['foo="wait=9"', 0],
  ['foo; wait=9', 0],
  ['await=9', 0],
  ['waiting=9', 0],
  ['x-wait=9', 0],
  ['wait', 0],
  ['wait=', 0],
  ['wait=""', 0],
  ['wait=-5', 0],
  ['wait=+5', 0],
  ['wait=1.5', 0],
  ['wait=5s', 0],
  ['wait=5 6', 0],
  ['wait=1e1', 0],
  ['wait=0x10', 0],
  ['wait=Infinity', 0],
  ['wait=NaN', 0],
  ['wait=10000000000', 0],
  ['wait="5', 0],
  [',,wait=5,,', 5],
])('Prefer: %s waits for %d seconds', (prefer, seconds) => {
  expect(waitSeconds(prefer)).toBe(seconds)
})

test('no wait is longer than a minute', () => {
  expect(LONGEST_WAIT).toBe(60)
})

test('a header made to be slow to read is read at once', () => {
  const started = performance.now()
  for (const part of ['"', '"\\', 'wait ', ' ', ',', '",', '\\"']) waitSeconds(part.repeat(32_768 / part.length))
  expect(performance.now() - started).toBeLessThan(500)
})
