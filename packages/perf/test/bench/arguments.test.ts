import { describe, expect, it } from 'vitest'
import { type Parsed, parseArguments, usage } from '../../src/bench/arguments.ts'

const known = ['reserve', 'check', 'list', 'lease-get', 'lease-put']
const standard = {
  sections: known,
  json: false,
  seconds: 0.8,
  rounds: 5,
  rows: 1_000_000,
  slots: 1_000,
  largest: 10_000_000,
  expired: 1_000_000,
  page: null,
  from: [],
}

const run = (changes: object): Parsed => ({ kind: 'run', options: { ...standard, ...changes } })
const fault = (detail: string): Parsed => ({ kind: 'fault', detail })

describe('arguments', () => {
  it.each<[string, Parsed]>([
    ['', run({})],
    ['list', run({ sections: ['list'] })],
    ['list reserve list', run({ sections: ['reserve', 'list'] })],
    ['--json', run({ json: true })],
    ['check --seconds 0.2 --rounds 1', run({ sections: ['check'], seconds: 0.2, rounds: 1 })],
    ['--seconds=2 --rounds=3 --rows=10', run({ seconds: 2, rounds: 3, rows: 10 })],
    ['lease', run({ sections: ['lease-get', 'lease-put'] })],
    ['lease-put check', run({ sections: ['check', 'lease-put'] })],
    ['leas', fault('there is no section "leas"; there are reserve, check, list, lease-get, lease-put')],
    ['lease-', fault('there is no section "lease-"; there are reserve, check, list, lease-get, lease-put')],
    ['--largest 1e5 --expired 20', run({ largest: 100_000, expired: 20 })],
    ['--largest=1000', run({ largest: 1_000 })],
    ['--largest 2000', fault('--largest must be a power of ten from 1000 to 1e7')],
    ['--largest 1e8', fault('--largest must be a power of ten from 1000 to 1e7')],
    ['--largest 100', fault('--largest must be a power of ten from 1000 to 1e7')],
    ['--page docs', run({ page: 'docs' })],
    ['--page=a=b', run({ page: 'a=b' })],
    ['--page docs --from a.json b.json', run({ page: 'docs', from: ['a.json', 'b.json'] })],
    ['--from a.json --from b.json --page docs', run({ page: 'docs', from: ['a.json', 'b.json'] })],
    ['--page', fault('--page must be a folder')],
    ['--page --json', fault('--page must be a folder')],
    ['--from --page docs', fault('--from must be followed by files of --json')],
    ['--from a.json', fault('--from needs --page: it runs nothing')],
    ['check --page docs --from a.json', fault('--from runs nothing: name no sections')],
    ['--help', { kind: 'help' }],
    ['list -h', { kind: 'help' }],
    ['lists', fault('there is no section "lists"; there are reserve, check, list, lease-get, lease-put')],
    ['--jsn', fault('there is no option --jsn')],
    ['-j', fault('there is no option -j')],
    ['--toString 1', fault('there is no option --toString')],
    ['--rounds', fault('--rounds must be a whole number from 1')],
    ['--rounds 0', fault('--rounds must be a whole number from 1')],
    ['--rounds 1.5', fault('--rounds must be a whole number from 1')],
    ['--rows -1', fault('--rows must be a whole number from 1')],
    ['--slots 50', run({ slots: 50 })],
    ['--slots 15', fault('--slots must be a whole number from 16 to 1000')],
    ['--slots 1001', fault('--slots must be a whole number from 16 to 1000')],
    ['--seconds 0', fault('--seconds must be a number of seconds from 0.05')],
    ['--seconds 1e3', fault('--seconds must be a number of seconds from 0.05')],
    ['--seconds ten', fault('--seconds must be a number of seconds from 0.05')],
  ])('"%s"', (line, expected) => {
    expect(parseArguments(line.split(' ').filter(Boolean), known)).toEqual(expected)
  })

  it('are explained, with every section', () => {
    expect(usage(known)).toContain('reserve, check, list, lease-get, lease-put')
  })
})
