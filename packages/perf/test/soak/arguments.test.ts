import { describe, expect, it } from 'vitest'
import { type Parsed, parseArguments, usage } from '../../src/soak/arguments.ts'

const run = (changes: object): Parsed => ({ kind: 'run', options: { minutes: 20, seed: 1, json: false, ...changes } })
const fault = (detail: string): Parsed => ({ kind: 'fault', detail })

describe('arguments', () => {
  it.each<[string, Parsed]>([
    ['', run({})],
    ['--minutes 0.3 --seed 7', run({ minutes: 0.3, seed: 7 })],
    ['--minutes=90 --json', run({ minutes: 90, json: true })],
    ['--seed=0', run({ seed: 0 })],
    ['-h', { kind: 'help' }],
    ['--minutes 1 --help', { kind: 'help' }],
    ['--minutes', fault('--minutes must be a number of minutes from 0.1')],
    ['--minutes 0', fault('--minutes must be a number of minutes from 0.1')],
    ['--minutes -1', fault('--minutes must be a number of minutes from 0.1')],
    ['--seed 1.5', fault('--seed must be a whole number from 0')],
    ['--seed x', fault('--seed must be a whole number from 0')],
    ['--toString 1', fault('there is no option --toString')],
    ['minutes', fault('there is no option minutes')],
  ])('"%s"', (text, parsed) => {
    expect(parseArguments(text.split(' ').filter(Boolean))).toEqual(parsed)
  })

  it('are all in the usage', () => {
    for (const option of ['--minutes', '--seed', '--json']) expect(usage).toContain(option)
  })
})
