import { expect, test } from 'vitest'
import { bad, badWithAdvice, good, notChecked, toJson, toText } from './report.ts'

const findings = [
  good('a', 'it works'),
  bad('bb', 'It is\nbroken.', 'did you mean x?'),
  notChecked('c', 'unknown'),
  notChecked('d', 'unknown', 'look'),
]

test('one line for each finding, and the number of problems', () => {
  expect(toText(findings)).toBe(
    `good         a   it works.
bad          bb  It is broken. To do: did you mean x?
not checked  c   unknown.
not checked  d   unknown. To do: look.

1 problem found.
`,
  )
  expect(toText([good('a', 'b')])).toContain('\nNo problem found.\n')
})

test('JSON', () => {
  expect(JSON.parse(toJson(findings))).toEqual({ problems: 1, findings })
})

test.each([
  ['it is wrong; correct it', 'it is wrong', 'correct it'],
  ['it is wrong; correct it; then wait.', 'it is wrong', 'correct it; then wait'],
  ['It is missing: install it.', 'It is missing', 'install it'],
])('the advice of %s', (sentence, text, advice) => {
  expect(badWithAdvice('x', sentence)).toEqual({ check: 'x', state: 'bad', text, advice })
})
