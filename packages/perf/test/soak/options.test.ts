import { describe, expect, it } from 'vitest'
import { parseSoakOptions, type SoakOptions } from '../../src/soak/options.ts'

const parse = (line: string) => parseSoakOptions(line.split(' ').filter(Boolean))

describe('options', () => {
  it.each<[string, Partial<SoakOptions>]>([
    ['', {}],
    ['--minutes 0.3 --seed 7', { minutes: 0.3, seed: 7 }],
    ['--minutes=90 --json', { minutes: 90, json: true }],
  ])('"%s"', (line, changes) => {
    expect(parse(line)).toEqual({ minutes: 20, seed: 1, json: false, ...changes })
  })

  it.each([
    ['--minutes', "Option '--minutes <value>' argument missing"],
    ['--minutes 0', '--minutes must be a number of minutes from 0.1'],
    ['--seed 1.5', '--seed must be a whole number from 0'],
    ['--toString 1', "Unknown option '--toString'"],
    ['minutes', "Unexpected argument 'minutes'"],
  ])('"%s" is rejected', (line, message) => {
    expect(() => parse(line)).toThrow(message)
  })

  it.each(['-h', '--minutes 1 --help'])('"%s" requests help', line => {
    expect(parse(line)).toBeNull()
  })
})
