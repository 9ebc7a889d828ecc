import { expect, test } from 'vitest'
import { findNearest } from './nearest.ts'

test.each([
  ['heztner', 'hetzner'],
  ['hetzne', 'hetzner'],
  ['xhetzner', 'hetzner'],
  ['locla', 'local'],
  ['loacl-dev', 'local'],
  ['aws', 'aws'],
  ['aw', 'aws'],
  ['', 'aws'],
])('of local, hetzner and aws, %j is nearest to %s', (word, nearest) => {
  expect(findNearest(word, ['local', 'hetzner', 'aws'])).toBe(nearest)
})

test('the first of equally near ones', () => {
  expect(findNearest('b', ['aa', 'cc'])).toBe('aa')
  expect(findNearest('a', [])).toBeUndefined()
})
