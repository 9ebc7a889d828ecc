import { describe, expect, it } from 'vitest'
import type { BurstRun } from '../../src/bench/load/bursts.ts'
import { tableText } from '../../src/bench/report/table.ts'
import { faultsOf, notMeasured, type ProviderLoad, providersTable } from '../../src/bench/sections/providers-result.ts'

const run = (changes: Partial<BurstRun>): BurstRun => ({
  perSecond: 1,
  callsPerOperation: 3,
  p50Ms: 900,
  p99Ms: 900,
  done: 1,
  late: 0,
  faults: new Map(),
  ...changes,
})

const load = (changes: Partial<ProviderLoad>): ProviderLoad => ({
  provider: 'dynadot',
  delayMs: 300,
  concurrent: 64,
  runs: { api: [run({})], oneWrite: [run({})] },
  ...changes,
})

describe('the figures of a provider', () => {
  it('are medians, with ratios round by round', () => {
    const api = [
      run({ perSecond: 30, callsPerOperation: 0.1, done: 64, late: 2 }),
      run({ perSecond: 40, callsPerOperation: 0.2, done: 64, late: 1, p50Ms: 1_800 }),
    ]
    const oneWrite = [run({ perSecond: 1 }), run({ perSecond: 2, done: 2 })]
    const { figures } = providersTable([load({ runs: { api, oneWrite } })])
    expect(figures).toEqual([
      {
        provider: 'dynadot',
        delayMs: 300,
        concurrent: 64,
        api: {
          perSecond: { median: 35, min: 30, max: 40 },
          callsPerCommit: { median: expect.closeTo(0.15), min: 0.1, max: 0.2 },
          p50Ms: { median: 1_350, min: 900, max: 1_800 },
          p99Ms: { median: 900, min: 900, max: 900 },
          commits: 128,
          answered202: 3,
        },
        oneWrite: {
          perSecond: { median: 1.5, min: 1, max: 2 },
          callsPerCommit: { median: 3, min: 3, max: 3 },
          commits: 3,
        },
        ratio: { median: 25, min: 20, max: 30 },
      },
    ])
  })

  it('stand in a table that names each provider once, with its delay if it has one', () => {
    const loads = [load({ concurrent: 1 }), load({}), load({ provider: 'powerdns', delayMs: 0 })]
    const named = tableText(providersTable(loads).table)
      .split('\n')
      .map(line => line.slice(0, 35).trim())
    expect(named.slice(2)).toEqual([
      'dynadot, 300 ms a call           1',
      '',
      '64',
      '',
      'powerdns                        64',
      '',
    ])
  })

  it('are none without a commit whose records are out, and with a fault', () => {
    const api = [run({}), run({ done: 0, late: 4 })]
    const oneWrite = [run({ faults: new Map([['no connection', 2]]) })]
    expect(faultsOf([load({}), load({ concurrent: 16, runs: { api, oneWrite } })])).toEqual([
      'dynadot, API, 16 concurrent: a round without any commit whose records are out',
      'dynadot, one write, 16 concurrent: 2 x no connection',
    ])
  })

  it('that are lacking have a line that says why', () => {
    const lacks = 'PowerDNS is not installed: apt-get install pdns-server'
    expect(notMeasured([{ name: 'dynadot', lacks: null }])).toEqual([])
    expect(notMeasured([{ name: 'powerdns', lacks }])).toEqual([`Not measured: powerdns. ${lacks}`])
  })
})
