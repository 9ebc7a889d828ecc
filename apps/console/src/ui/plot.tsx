import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { formatLatest, type PlotSeries } from '../domain/overview.ts'
import { formatAxisTime } from '../domain/time.ts'

interface PlotProps {
  readonly title: string
  /** Unix times in seconds. */
  readonly times: readonly number[]
  readonly series: readonly PlotSeries[]
  /** Of all values; empty for a count of what the title says. */
  readonly unit: string
  /** Instead of the latest value of the first series. */
  readonly headline?: string
}

/** A wide plot is higher, or its lines would look flat. */
const toHeight = (width: number): number => (width < 600 ? 96 : 144)

const MIN_LINE_POINTS = 10
/** The colour and the dashes of a line, which differ without the colour too. The style sheet has the same for the legend. */
const STYLES = {
  first: { colour: '--accent', dash: [] },
  second: { colour: '--plot-2', dash: [6, 3] },
  third: { colour: '--plot-3', dash: [2, 3] },
  bad: { colour: '--bad', dash: [6, 3] },
} as const
const ORDER = ['first', 'second', 'third'] as const
const COUNT_STEPS = [1, 2, 5]
  .flatMap(step => [0, 1, 2, 3, 4, 5, 6].map(power => step * 10 ** power))
  .sort((a, b) => a - b)

const toStyle = ({ isFault }: PlotSeries, index: number): keyof typeof STYLES =>
  isFault ? 'bad' : (ORDER[index] ?? 'third')

const readColour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name)

const toOptions = (width: number, series: readonly PlotSeries[], isCount: boolean): uPlot.Options => {
  const axis = {
    stroke: readColour('--muted'),
    grid: { stroke: readColour('--border'), width: 1 },
    ticks: { show: false },
  }
  return {
    width,
    height: toHeight(width),
    legend: { show: false },
    cursor: { show: false },
    padding: [8, 14, 0, 0],
    scales: { y: { range: (_, min, max) => [Math.min(0, min), max > 0 ? max * 1.1 : 1] } },
    axes: [
      {
        ...axis,
        size: 20,
        font: '11px system-ui',
        space: 60,
        values: (_, times) => times.map(time => formatAxisTime(time * 1_000, (times.at(-1) ?? 0) - (times[0] ?? 0))),
      },
      { ...axis, size: 40, font: '11px system-ui', space: 28, ...(isCount ? { incrs: COUNT_STEPS } : {}) },
    ],
    series: [
      {},
      ...series.map((line, index) => ({
        label: line.label,
        stroke: readColour(STYLES[toStyle(line, index)].colour),
        dash: [...STYLES[toStyle(line, index)].dash],
        width: 1.5,
        // A line through few points is hardly visible.
        points: { show: line.values.filter(value => value !== null).length < MIN_LINE_POINTS, size: 4 },
        spanGaps: false,
      })),
    ],
  }
}

/** A small plot of series over time. The latest values are text, for those who do not see the plot. */
export const Plot = ({ title, times, series, unit, headline }: PlotProps) => {
  const container = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const [colours, setColours] = useState(0)
  const shape = series.map(({ label }) => label).join('\n')
  const data: uPlot.AlignedData = [[...times], ...series.map(({ values }) => [...values])]
  const latest = useRef({ data, series })
  latest.current = { data, series }

  useEffect(() => {
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    const update = () => setColours(count => count + 1)
    scheme.addEventListener('change', update)
    return () => scheme.removeEventListener('change', update)
  }, [])

  // Other series or colours need another plot.
  useEffect(() => {
    const element = container.current
    if (element === null) return
    let isCurrent = true
    const observer = new ResizeObserver(() => {
      const width = element.clientWidth
      if (width > 0) plot.current?.setSize({ width, height: toHeight(width) })
    })
    void import('./uplot.ts').then(({ UPlot }) => {
      if (!isCurrent) return
      plot.current = new UPlot(
        toOptions(Math.max(1, element.clientWidth), latest.current.series, unit === ''),
        latest.current.data,
        element,
      )
      observer.observe(element)
    })
    return () => {
      isCurrent = false
      observer.disconnect()
      plot.current?.destroy()
      plot.current = null
    }
  }, [shape, colours, unit])

  useEffect(() => {
    plot.current?.setData(data)
  })

  return (
    <figure class="plot">
      <figcaption>
        <h3>{title}</h3>
        <span class="value">{headline ?? formatLatest(series[0]?.values ?? [], unit)}</span>
      </figcaption>
      <div ref={container} aria-hidden="true" />
      {series.length > 1 && (
        <div class="legend">
          {series.map((line, index) => (
            <span key={line.label} class={`key ${toStyle(line, index)}`}>
              {line.label} {formatLatest(line.values, unit)}
            </span>
          ))}
        </div>
      )}
    </figure>
  )
}
