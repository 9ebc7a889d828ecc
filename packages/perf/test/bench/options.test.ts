import { describe, expect, it } from 'vitest'
import { type BenchOptions, benchUsage, parseBenchOptions } from '../../src/bench/options.ts'

const known = ['reserve', 'check', 'list', 'lease-get', 'lease-put']
const comparable = ['reserve', 'lease-get']
const all = { all: known, checkout: comparable, peer: ['reserve', 'check'] }
const parse = (line: string) => parseBenchOptions(line.split(' ').filter(Boolean), all)
const defaults: BenchOptions = {
  sections: known,
  json: false,
  seconds: 0.8,
  warmUpSeconds: 3,
  rounds: 5,
  rows: 1_000_000,
  slots: 1_000,
  against: null,
  peer: null,
  postgres: null,
  processes: 1,
  cores: 1,
}
const peer = { host: 'localhost', port: 80, pool: 'pool.test', headers: '' }

describe('options', () => {
  it.each<[string, Partial<BenchOptions>]>([
    ['', {}],
    ['list', { sections: ['list'] }],
    ['list reserve list', { sections: ['reserve', 'list'] }],
    ['--json', { json: true }],
    ['check --seconds 0.2 --rounds 1', { sections: ['check'], seconds: 0.2, rounds: 1 }],
    ['--seconds=2 --rounds=3 --rows=10', { seconds: 2, rounds: 3, rows: 10 }],
    ['--warm-up 0', { warmUpSeconds: 0 }],
    ['--rounds 2 --rounds 3', { rounds: 3 }],
    ['lease', { sections: ['lease-get', 'lease-put'] }],
    ['lease-put check', { sections: ['check', 'lease-put'] }],
    ['--slots 50', { slots: 50 }],
    ['--against ../before', { sections: comparable, against: '../before' }],
    ['lease --against=a=b --rounds 9', { sections: ['lease-get'], against: 'a=b', rounds: 9 }],
    ['--against http://localhost', { sections: ['reserve', 'check'], peer }],
    [
      'check --against http://[::1]:8080 --pool a.example --token secret --postgres postgres://db/postgres',
      {
        sections: ['check'],
        peer: { host: '::1', port: 8080, pool: 'a.example', headers: 'Authorization: Bearer secret\r\n' },
        postgres: 'postgres://db/postgres',
      },
    ],
    ['--against http://localhost --processes 2', { sections: ['reserve', 'check'], peer, processes: 2 }],
    ['--cores 0.25', { cores: 0.25 }],
  ])('"%s"', (line, changes) => {
    expect(parse(line)).toEqual({ ...defaults, ...changes })
  })

  it.each([
    ['leas', 'unknown section "leas"; the sections are reserve, check, list, lease-get, lease-put'],
    ['lease-', 'unknown section "lease-"'],
    ['lists', 'unknown section "lists"'],
    ['list --against x', 'unknown section "list"; the sections are reserve, lease-get'],
    ['--against=', '--against must be the folder of another checkout, or the URL of a server'],
    ['list --against http://a', 'unknown section "list"; the sections are reserve, check'],
    ['--against https://a', '--against https://a: a server must be given as http://host:port'],
    ['--against http://a/b', '--against http://a/b: a server must be given as http://host:port'],
    ['--pool a.example', '--pool needs --against with the URL of a server'],
    ['--token x --against ../before', '--token needs --against with the URL of a server'],
    ['--postgres=postgres://a', '--postgres needs --against with the URL of a server'],
    ['--processes 2', '--processes needs --against with the URL of a server'],
    ['--cores 1.5', '--cores must be a share from 0.05 to 1'],
    ['--cores 0.01', '--cores must be a share from 0.05 to 1'],
    ['--jsn', "Unknown option '--jsn'"],
    ['-j', "Unknown option '-j'"],
    ['--json=1', "Option '--json' does not take an argument"],
    ['--rounds', "Option '--rounds <value>' argument missing"],
    ['--rounds 0', '--rounds must be a whole number from 1'],
    ['--rounds 1.5', '--rounds must be a whole number from 1'],
    ['--rows=-1', '--rows must be a whole number from 1'],
    ['--slots 15', '--slots must be a whole number from 16 to 1000'],
    ['--slots 1001', '--slots must be a whole number from 16 to 1000'],
    ['--seconds 0', '--seconds must be a number of seconds from 0.05'],
    ['--seconds 1e3', '--seconds must be a number of seconds from 0.05'],
    ['--seconds ten', '--seconds must be a number of seconds from 0.05'],
  ])('"%s" is rejected', (line, message) => {
    expect(() => parse(line)).toThrow(message)
  })

  it.each(['--help', 'list -h'])('"%s" requests help', line => {
    expect(parse(line)).toBeNull()
  })

  it('and sections are all in the usage', () => {
    expect(benchUsage(all)).toContain('reserve, check, list, lease-get, lease-put')
  })
})
