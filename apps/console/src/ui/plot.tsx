import { useEffect, useRef, useState } from 'preact/hooks'
import type uPlot from 'uplot'
import { formatLatest, type PlotSeries } from '../domain/series.ts'
import { formatAxisTime } from '../domain/time.ts'

interface PlotProps {
  readonly title: string
  /** Unix times in seconds. */
  readonly times: readonly number[]
  readonly series: readonly PlotSeries[]
  readonly unit: string
}

const HEIGHT_PX = 96
const MIN_LINE_POINTS = 10
const COLOURS = ['--accent', '--warn', '--bad'] as const
const KEYS = ['first', 'second', 'third'] as const

const readColour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name)

const toOptions = (width: number, series: readonly PlotSeries[]): uPlot.Options => {
  const axis = {
    stroke: readColour('--muted'),
    grid: { stroke: readColour('--border'), width: 1 },
    ticks: { show: false },
  }
  return {
    width,
    height: HEIGHT_PX,
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
      { ...axis, size: 40, font: '11px system-ui', space: 28 },
    ],
    series: [
      {},
      ...series.map(({ label, values }, index) => ({
        label,
        stroke: readColour(COLOURS[index] ?? '--muted'),
        width: 1.5,
        // A line through few points is hardly visible.
        points: { show: values.filter(value => value !== null).length < MIN_LINE_POINTS, size: 4 },
        spanGaps: false,
      })),
    ],
  }
}

/** A small plot of up to three series over time. The latest values are text, for those who do not see the plot. */
export const Plot = ({ title, times, series, unit }: PlotProps) => {
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
      if (element.clientWidth > 0) plot.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX })
    })
    void import('./uplot.ts').then(({ UPlot }) => {
      if (!isCurrent) return
      plot.current = new UPlot(
        toOptions(Math.max(1, element.clientWidth), latest.current.series),
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
  }, [shape, colours])

  useEffect(() => {
    plot.current?.setData(data)
  })

  return (
    <figure class="plot">
      <figcaption>
        <h3>{title}</h3>
        <span class="value">{formatLatest(series[0]?.values ?? [], unit)}</span>
      </figcaption>
      <div ref={container} aria-hidden="true" />
      {series.length > 1 && (
        <div class="legend">
          {series.map(({ label, values }, index) => (
            <span key={label} class={`key ${KEYS[index] ?? ''}`}>
              {label} {formatLatest(values, '')}
            </span>
          ))}
        </div>
      )}
    </figure>
  )
}
