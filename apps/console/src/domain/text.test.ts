import { deploymentCommon } from '@pool/contract'
import { expect, test } from 'vitest'
import { formatCount, pickVerb, toFieldText, toVisibleText } from './text.ts'

test.each([
  [0, '0 names'],
  [1, '1 name'],
  [2_500, '2,500 names'],
])('%d has its unit', (count, text) => {
  expect(formatCount(count, 'name')).toBe(text)
  expect(pickVerb(count, 'is', 'are')).toBe(count === 1 ? 'is' : 'are')
})

test.each([
  ['sovereignSubdomain is required: one label.', 'The subdomain is required: one label.'],
  ['loadBalancerIP must be a unicast IPv4 address.', 'The address must be a unicast IPv4 address.'],
  ['The access key is required.', 'The access key is required.'],
])('%s', (message, text) => expect(toFieldText(message)).toBe(text))

test('every field of a deployment that a form can leave empty has a label', () => {
  const issues = deploymentCommon.safeParse({}).error?.issues ?? []
  expect(issues.length).toBeGreaterThan(0)
  for (const { message } of issues) expect(toFieldText(message)).toMatch(/^(?:The|A) /)
})

test.each([
  ['plain <b>markup</b> & text: ü 漢', 'plain <b>markup</b> & text: ü 漢'],
  ['\u001b[31mred\u001b[0m', '<ESC>[31mred<ESC>[0m'],
  ['\u001b]0;title\u0007', '<ESC>]0;title<BEL>'],
  ['a\u0000\t\r\n\u007f', 'a<NUL><TAB><CR><LF><U+007F>'],
  ['\u009b31m', '<U+009B>31m'],
  ['safe\u202eexe.txt', 'safe<U+202E>exe.txt'],
  ['zero\u200bwidth\ufeff', 'zero<U+200B>width<U+FEFF>'],
])('%j', (text, visible) => expect(toVisibleText(text)).toBe(visible))
