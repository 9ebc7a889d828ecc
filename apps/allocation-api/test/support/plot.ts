import type { TimeSeries } from '@pool/test-kit/prometheus.ts'

export interface PlotPanel {
  readonly title: string
  /** Of Grafana. */
  readonly unit: string
  /** Shown without data. */
  readonly noValue: string
  readonly series: readonly (Pick<TimeSeries, 'values'> & { readonly name: string })[]
}

export interface PlotRow {
  readonly title: string
  readonly panels: readonly PlotPanel[]
}

const COLUMNS = 4
const WIDTH = 300
const HEIGHT = 190
const CHART = { left: 46, top: 24, right: 8, bottom: 62 } as const
const ROW_HEIGHT = 28
const MAX_NAMES = 6
const COLORS = ['#3274d9', '#e0752d', '#508642', '#bf1b00', '#6d1f62', '#b7950b', '#3f6833', '#967302']

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const toScaled = (value: number, base: number, units: readonly string[]): string => {
  const power = value === 0 ? 0 : Math.max(0, Math.min(units.length - 1, Math.floor(Math.log(value) / Math.log(base))))
  return `${Number((value / base ** power).toPrecision(3))}${units[power]}`
}

const formatValue = (value: number, unit: string): string => {
  if (unit === 'percentunit') return `${Number((value * 100).toPrecision(3))} %`
  if (unit === 'bytes') return toScaled(value, 1_024, [' B', ' KiB', ' MiB', ' GiB', ' TiB'])
  if (unit === 's')
    return value < 1 ? `${Number((value * 1_000).toPrecision(3))} ms` : `${Number(value.toPrecision(3))} s`
  return `${Number(value.toPrecision(3))}${unit === 'ops' || unit === 'reqps' ? '/s' : ''}`
}

const renderPanel = ({ title, unit, noValue, series }: PlotPanel, from: number, to: number): string => {
  const { left, top, right, bottom } = CHART
  const width = WIDTH - left - right
  const height = HEIGHT - top - bottom
  const finite = series.flatMap(({ values }) => values.map(([, value]) => value)).filter(Number.isFinite)
  const max = Math.max(...finite, 0) || 1
  const toX = (at: number) => (left + ((at - from) / (to - from)) * width).toFixed(1)
  const toY = (value: number) => (top + height - (value / max) * height).toFixed(1)
  const lines = series.map(({ values }, i) => {
    const points = values.filter(([, value]) => Number.isFinite(value)).map(([at, value]) => `${toX(at)},${toY(value)}`)
    return `<polyline fill="none" stroke="${COLORS[i % COLORS.length]}" points="${points.join(' ')}"/>`
  })
  const names = series.slice(0, MAX_NAMES).map(({ name }, i) => {
    const [x, y] = [left + (i % 2) * (width / 2), HEIGHT - bottom + 26 + Math.floor(i / 2) * 12]
    return `<text x="${x}" y="${y}" fill="${COLORS[i % COLORS.length]}">${escapeXml(name.slice(0, 26))}</text>`
  })
  const empty = `<text x="${left + width / 2}" y="${top + height / 2}" text-anchor="middle">${escapeXml(noValue)}</text>`
  return [
    `<text x="4" y="14" font-weight="bold">${escapeXml(title)}</text>`,
    `<rect x="${left}" y="${top}" width="${width}" height="${height}" fill="none" stroke="#ccc"/>`,
    `<text x="${left - 4}" y="${top + 8}" text-anchor="end">${formatValue(max, unit)}</text>`,
    `<text x="${left - 4}" y="${top + height}" text-anchor="end">0</text>`,
    `<text x="${left}" y="${top + height + 12}">0 s</text>`,
    `<text x="${left + width}" y="${top + height + 12}" text-anchor="end">${Math.round(to - from)} s</text>`,
    ...(finite.length > 0 ? [...lines, ...names] : [empty]),
  ].join('\n')
}

/** An SVG of the rows of a dashboard, from one Unix time in seconds to another. */
export const renderDashboard = (rows: readonly PlotRow[], from: number, to: number): string => {
  let y = 0
  const parts = rows.flatMap(({ title, panels }) => {
    const heading = `<text x="4" y="${y + 20}" font-size="14" font-weight="bold">${escapeXml(title)}</text>`
    y += ROW_HEIGHT
    const charts = panels.map((panel, i) => {
      const position = `translate(${(i % COLUMNS) * WIDTH} ${y + Math.floor(i / COLUMNS) * HEIGHT})`
      return `<g transform="${position}">\n${renderPanel(panel, from, to)}\n</g>`
    })
    y += Math.ceil(panels.length / COLUMNS) * HEIGHT
    return [heading, ...charts]
  })
  const size = `width="${COLUMNS * WIDTH}" height="${y}" viewBox="0 0 ${COLUMNS * WIDTH} ${y}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="9" fill="#333">
<title>Dashboard</title>
<rect width="100%" height="100%" fill="#fff"/>
${parts.join('\n')}
</svg>
`
}
