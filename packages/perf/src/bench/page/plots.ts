import type { Plot, Point, Series } from './plot.ts'

/** A section as its JSON has it, of which a plot knows what it needs. */
export type Figures = Readonly<Record<string, unknown>>

export interface NamedPlot {
  readonly file: string
  readonly plot: Plot
}

interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

const at = (x: number, { median, min, max }: Spread): Point => ({ x, median, min, max })
/** Whether the rounds gave figures: of a round without operations there are none, and JSON has null for them. */
const isKnown = ({ median, min, max }: Point): boolean => [median, min, max].every(Number.isFinite)

const LOADS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
const CONNECTIONS = 'connections, each with one request at a time'

const loadPlots = (section: Figures): NamedPlot[] => {
  const verbs = section.verbs as readonly {
    readonly name: string
    readonly connections: number
    readonly p50Ms: Spread
    readonly p99Ms: Spread
    readonly perSecond: Spread
  }[]
  const names = [...new Set(verbs.map(({ name }) => name))]
  const series = (of: 'p50Ms' | 'p99Ms' | 'perSecond', what: string): Series[] =>
    names.map((name, colour) => ({
      name: `${name}${what}`,
      colour,
      dashed: of === 'p99Ms',
      points: verbs
        .filter(verb => verb.name === name)
        .map(verb => at(verb.connections, verb[of]))
        .filter(isKnown),
    }))
  return [
    {
      file: 'latency-against-load',
      plot: {
        title: 'Latency against load: one API process',
        x: { label: CONNECTIONS, kind: 'log', ticks: LOADS },
        y: { label: 'milliseconds', kind: 'log' },
        series: [...series('p50Ms', ', p50'), ...series('p99Ms', ', p99')],
      },
    },
    {
      file: 'throughput-against-load',
      plot: {
        title: 'Throughput against load: one API process',
        x: { label: CONNECTIONS, kind: 'log', ticks: LOADS },
        y: { label: 'answers a second', kind: 'log' },
        series: series('perSecond', ''),
      },
    },
  ]
}

const replicasPlots = (section: Figures): NamedPlot[] => {
  const loads = section.loads as readonly {
    readonly connections: number
    readonly processes: number
    readonly perSecond: Spread
  }[]
  const connections = [...new Set(loads.map(load => load.connections))]
  const ofEach = connections.map(count => loads.filter(load => load.connections === count))
  const first = ofEach.at(-1)?.[0]
  const most = Math.max(...loads.map(({ processes }) => processes))
  return [
    {
      file: 'throughput-against-replicas',
      plot: {
        title: 'Throughput against replicas: all on the same two cores, with Postgres and the load',
        x: { label: 'API processes', kind: 'linear', ticks: [1, 2, 4] },
        y: { label: 'answers a second', kind: 'linear' },
        series: ofEach.map((own, colour) => ({
          name: `${own[0]?.connections} connections`,
          colour,
          points: own.map(load => at(load.processes, load.perSecond)),
        })),
        references: first
          ? [
              {
                name: `ideal, ${first.connections} connections`,
                points: [
                  [1, first.perSecond.median],
                  [most, first.perSecond.median * most],
                ],
              },
            ]
          : [],
      },
    },
  ]
}

const COSTS = [
  ['check', 'checkMs'],
  ['reserve', 'reserveMs'],
  ['sweep', 'sweepMs'],
  ['list', 'listMs'],
] as const
const TARGET = 1.3

const sizePlots = (section: Figures): NamedPlot[] => {
  const sizes = section.sizes as readonly {
    readonly rows: number
    readonly toSmallest: Readonly<Record<(typeof COSTS)[number][1], Spread>>
  }[]
  const rows = sizes.map(size => size.rows)
  return [
    {
      file: 'cost-against-size',
      plot: {
        title: 'Cost against size, to a pool of a thousand rows',
        x: { label: 'rows of the pool', kind: 'log', ticks: rows },
        y: {
          label: 'times what it costs at 1000 rows',
          kind: 'log',
          ticks: [0.2, 0.3, 0.5, 0.7, 1, 1.3, 2, 3, 5, 10, 20],
        },
        series: COSTS.map(([name, of], colour) => ({
          name,
          colour,
          points: sizes.map(size => at(size.rows, size.toSmallest[of])).filter(isKnown),
        })),
        references: [
          {
            name: 'at most: check, reserve',
            points: [
              [Math.min(...rows), TARGET],
              [Math.max(...rows), TARGET],
            ],
          },
        ],
      },
    },
  ]
}

const plotters: Readonly<Record<string, (section: Figures) => NamedPlot[]>> = {
  load: loadPlots,
  replicas: replicasPlots,
  size: sizePlots,
}

/** The plots of a section; most have none. */
export const plotsOf = (name: string, section: Figures): NamedPlot[] => plotters[name]?.(section) ?? []
