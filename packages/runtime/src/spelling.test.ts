import { expect, test } from 'vitest'
import { explainUnknownParameter, findNearest } from './spelling.ts'

test.each([
  ['heztner', 'hetzner'],
  ['hetzne', 'hetzner'],
  ['xhetzner', 'hetzner'],
  ['locla', 'local'],
  ['loacl-dev', 'local'],
  ['aws', 'aws'],
  ['HETZNER', 'hetzner'],
  ['AWS', 'aws'],
  ['lo_cal', 'local'],
  ['Lo-Cals', 'local'],
  ['aw', 'aws'],
  ['', 'aws'],
])('of local, hetzner and aws, %j is nearest to %s', (word, nearest) => {
  expect(findNearest(word, ['local', 'hetzner', 'aws'])).toBe(nearest)
})

test('the first of equally near ones', () => {
  expect(findNearest('b', ['aa', 'cc'])).toBe('aa')
  expect(findNearest('a', [])).toBeUndefined()
})

test.each([
  ['/list', undefined],
  ['/list?', undefined],
  ['/list?sub=a&limit=1&limit=2', undefined],
  ['/list?%73ub=a', undefined],
  ['/list?Sub=a', 'The parameter "Sub" is unknown: correct it to sub, or remove it.'],
  ['/list?LIMIT=5', 'The parameter "LIMIT" is unknown: correct it to limit, or remove it.'],
  ['/list?sub=a&lim_it=5', 'The parameter "lim_it" is unknown: correct it to limit, or remove it.'],
  ['/list?sub=a?limit=1', undefined],
  ['/list?limits', 'The parameter "limits" is unknown: correct it to limit, or remove it.'],
  ['/list?=secret', 'The parameter "" is unknown: correct it to sub, or remove it.'],
  ['/list?subdomain=a', 'The parameter "subdomain" is unknown: correct it to sub, or remove it.'],
  ['/list?limit%00=1', String.raw`The parameter "limit\u0000" is unknown: correct it to limit, or remove it.`],
  ['/list?__proto__=1', 'The parameter "__proto__" is unknown: correct it to limit, or remove it.'],
  [`/list?${'l'.repeat(31)}=1`, 'The parameter of 31 characters is unknown: correct it to limit, or remove it.'],
])('of an operation that takes sub and limit, %s: %s', (url, detail) => {
  expect(explainUnknownParameter(url, ['sub', 'limit'])).toBe(detail)
})

test('of an operation that takes no parameter', () => {
  expect(explainUnknownParameter('/livez?dryrun=true', [])).toBe(
    'The parameter "dryrun" is unknown: this request takes none, so remove it.',
  )
})
