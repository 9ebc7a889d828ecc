import { describe, expect, it } from 'vitest'
import { mergeRuns, type RunDocument, readDocuments, type SectionDocument } from '../../src/bench/page/documents.ts'
import { pageFiles } from '../../src/bench/page/page.ts'
import { plotsOf } from '../../src/bench/page/plots.ts'

const spread = (median: number) => ({ median, min: median, max: median })
const table = { columns: [{ title: 'rows', align: 'right' as const }], rows: [['10']] }
const section = (name: string, figures: object = {}): SectionDocument => ({
  name,
  title: `the ${name}`,
  notes: ['Closed loop.', `Of ${name}.`],
  tables: [table],
  valid: true,
  faults: [],
  ...figures,
})
const run = (date: string, ...sections: SectionDocument[]): RunDocument => ({
  machine: {
    date,
    cpu: 'a core',
    cores: 2,
    memoryBytes: 2 ** 34,
    os: 'Linux',
    node: 'v24',
    postgres: '18',
    workerd: '1',
    loadBefore: 0,
    fsyncMs: 0.1,
  },
  options: {
    sections: [],
    json: true,
    seconds: 0.8,
    rounds: 5,
    rows: 1,
    slots: 16,
    largest: 1_000,
    expired: 1,
    page: null,
    from: [],
  },
  valid: true,
  sections,
})

const replicas = section('replicas', {
  loads: [1, 2].map(processes => ({ connections: 16, processes, perSecond: spread(1_000 * processes) })),
})
const size = section('size', {
  sizes: [1_000, 10_000].map(rows => ({
    rows,
    toSmallest: { checkMs: spread(1), reserveMs: spread(1.2), sweepMs: spread(2), listMs: { median: null } },
  })),
})

describe('documents', () => {
  const one = run('2026-01-01T10:00:00.000Z', section('reserve'))
  it.each([
    ['a run', JSON.stringify(one), [one]],
    ['the runs of a page', JSON.stringify({ runs: [one, one] }), [one, one]],
    ['no JSON', '{', null],
    ['other JSON', '{"sections":[]}', null],
    ['a run whose sections are none', JSON.stringify({ ...one, sections: [{ name: 'reserve' }] }), null],
    ['a list', '[]', null],
    ['nothing', 'null', null],
  ])('%s', (_, text, expected) => {
    expect(readDocuments(text)).toEqual(expected)
  })

  it('are merged: of a section the last one counts', () => {
    const first = run('2026-01-01T10:00:00.000Z', section('reserve'), section('check'))
    const second = run('2026-01-01T11:00:00.000Z', section('check'), section('list'))
    const third = run('2026-01-01T12:00:00.000Z', section('list'))
    const said = mergeRuns([first, second, third]).map(({ machine, sections }) => [
      machine.date.slice(11, 13),
      ...sections.map(({ name }) => name),
    ])
    expect(said).toEqual([
      ['10', 'reserve'],
      ['11', 'check'],
      ['12', 'list'],
    ])
    expect(mergeRuns([first, run('2026-01-01T12:00:00.000Z', section('check'), section('reserve'))])).toHaveLength(1)
  })
})

describe('the page', () => {
  const runs = [
    run('2026-01-01T10:00:00.000Z', section('reserve'), replicas),
    run('2026-01-02T11:30:00.000Z', { ...size, valid: false, faults: ['check: 1 x status 500'] }),
  ]
  const files = new Map(pageFiles(runs).map(({ name, text }) => [name, text]))
  const page = files.get('last-run.md') ?? ''

  it('has a file for the text, for the figures and for each plot', () => {
    expect([...files.keys()]).toEqual([
      'last-run.md',
      'last-run.json',
      'throughput-against-replicas.svg',
      'cost-against-size.svg',
    ])
  })

  it('tells of each run where and when, and of each section what it was and what it gave', () => {
    expect(page.match(/^## .*/gm)).toEqual([
      '## 2026-01-01 10:00 UTC: reserve, replicas',
      '## 2026-01-02 11:30 UTC: size',
    ])
    expect(page.match(/^### .*/gm)).toEqual([
      '### reserve: the reserve',
      '### replicas: the replicas',
      '### size: the size',
    ])
    expect(page).toContain('```\nrows\n----\n  10\n```')
    expect(page).toContain('](throughput-against-replicas.svg)')
    // What is true of all is said once.
    expect(page.match(/Closed loop\./g)).toHaveLength(1)
    expect(page.match(/\*\*Invalid\*\*.*/g)).toHaveLength(1)
    expect(page).toContain('check: 1 x status 500')
  })

  it('can be made again from its own figures', () => {
    expect(pageFiles(readDocuments(files.get('last-run.json') ?? '') ?? [])).toEqual(pageFiles(runs))
  })
})

describe('plots', () => {
  it('of replicas have an ideal: the most connections on one process, times the processes', () => {
    const [{ plot } = { plot: undefined }] = plotsOf('replicas', replicas)
    expect(plot?.references?.[0]?.points).toEqual([
      [1, 1_000],
      [2, 2_000],
    ])
  })

  it('of sizes leave out what is no figure', () => {
    const [{ plot } = { plot: undefined }] = plotsOf('size', size)
    expect(plot?.series.map(({ name, points }) => [name, points.map(({ median }) => median)])).toEqual([
      ['check', [1, 1]],
      ['reserve', [1.2, 1.2]],
      ['sweep', [2, 2]],
      ['list', []],
    ])
  })

  it('there are none of other sections', () => {
    expect(plotsOf('reserve', section('reserve'))).toEqual([])
  })
})
