import { describe, expect, it } from 'vitest'
import { type BenchOptions, benchUsage, type KnownSection, parseBenchOptions } from '../../src/bench/options.ts'

const known: readonly KnownSection[] = [
  { name: 'reserve', comparesWith: 'server' },
  { name: 'list', comparesWith: 'nothing' },
  { name: 'lease-workerd', comparesWith: 'checkout' },
  { name: 'lease-cost', comparesWith: 'nothing' },
]
const comparable = ['reserve', 'lease-workerd']
const parse = (line: string) => parseBenchOptions(line.split(' ').filter(Boolean), known)
const defaults: BenchOptions = {
  sections: known.map(({ name }) => name),
  seconds: 0.8,
  warmUpSeconds: 3,
  rounds: 5,
  rows: 1_000_000,
  slots: 1_000,
  against: null,
  peer: null,
  postgres: null,
}
const peer = { host: 'localhost', port: 80, pool: 'pool.test', headers: '' }

describe('options', () => {
  it.each<[string, Partial<BenchOptions>]>([
    ['', {}],
    ['list reserve list', { sections: ['reserve', 'list'] }],
    ['--seconds=2 --rounds=3 --rows=10', { seconds: 2, rounds: 3, rows: 10 }],
    ['--rounds 2 --rounds 3', { rounds: 3 }],
    ['lease', { sections: ['lease-workerd', 'lease-cost'] }],
    ['--against ../before', { sections: comparable, against: '../before' }],
    ['lease --against=a=b --rounds 9', { sections: ['lease-workerd'], against: 'a=b', rounds: 9 }],
    ['--against http://localhost', { sections: ['reserve'], peer }],
    [
      'reserve --against http://[::1]:8080 --pool a.example --token secret --postgres postgres://db/postgres',
      {
        sections: ['reserve'],
        peer: { host: '::1', port: 8080, pool: 'a.example', headers: 'Authorization: Bearer secret\r\n' },
        postgres: 'postgres://db/postgres',
      },
    ],
  ])('"%s"', (line, changes) => {
    expect(parse(line)).toEqual({ ...defaults, ...changes })
  })

  it.each([
    ['leas', 'unknown section "leas"; the sections are reserve, list, lease-workerd, lease-cost'],
    ['list --against x', 'unknown section "list"; the sections are reserve, lease-workerd'],
    ['--against=', '--against must be the folder of another checkout, or the URL of a server'],
    ['--against https://a', '--against https://a: a server must be given as http://host:port'],
    ['--pool a.example', '--pool needs --against with the URL of a server'],
    ['--jsn', "Unknown option '--jsn'"],
    ['--rounds 0', '--rounds must be a whole number from 1'],
    ['--slots 15', '--slots must be a whole number from 16 to 1000'],
    ['--seconds ten', '--seconds must be a number of seconds from 0.05'],
  ])('"%s" is rejected', (line, message) => {
    expect(() => parse(line)).toThrow(message)
  })

  it('"--help" is not a run, and the usage has all sections', () => {
    expect(parse('list --help')).toBeNull()
    expect(benchUsage(known)).toContain('reserve, list, lease-workerd, lease-cost')
  })
})
