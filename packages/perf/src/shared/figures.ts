/** The values that several rounds gave for one figure. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** The nearest-rank percentile, so always a measured value. */
export const percentile = (ascending: ArrayLike<number>, percent: number): number => {
  const rank = Math.max(1, Math.ceil((percent / 100) * ascending.length))
  return ascending[rank - 1] ?? Number.NaN
}

export const toSpread = (values: readonly number[]): Spread => {
  const ascending = values.toSorted((a, b) => a - b)
  const upper = ascending[Math.floor(ascending.length / 2)] ?? Number.NaN
  const lower = ascending[Math.ceil(ascending.length / 2) - 1] ?? Number.NaN
  return { median: (lower + upper) / 2, min: ascending[0] ?? Number.NaN, max: ascending.at(-1) ?? Number.NaN }
}

/**
 * Ratios by round. The two values of a round were measured one after the other, so a machine that was slow for a while
 * slowed both, and their ratio does not show it.
 */
export const toRatios = (values: readonly number[], baseline: readonly number[]): number[] =>
  values.map((value, round) => value / (baseline[round] ?? Number.NaN))

export interface Interval {
  /** The geometric mean of the ratios. */
  readonly mean: number
  /** The bounds of the 95 % confidence interval of the mean; NaN for fewer than two ratios. */
  readonly low: number
  readonly high: number
}

/** Two-sided 95 % quantiles of Student's t distribution for 1 to 30 degrees of freedom. */
const T_95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
]

/** The mean of paired ratios with its 95 % confidence interval, on a logarithmic scale: a/b and b/a say the same. */
export const toInterval = (ratios: readonly number[]): Interval => {
  const logs = ratios.map(Math.log)
  const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length
  const variance = logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / (logs.length - 1)
  const quantile = T_95[logs.length - 2] ?? (logs.length > 31 ? 1.96 : Number.NaN)
  const margin = quantile * Math.sqrt(variance / logs.length)
  return { mean: Math.exp(mean), low: Math.exp(mean - margin), high: Math.exp(mean + margin) }
}

export interface Column {
  readonly title: string
  /** Numbers are aligned right, to be compared by their last digits. */
  readonly align: 'left' | 'right'
}

export interface Table {
  readonly columns: readonly Column[]
  readonly rows: readonly (readonly string[])[]
}

export const left = (title: string): Column => ({ title, align: 'left' })
export const right = (title: string): Column => ({ title, align: 'right' })

/** A Markdown table whose columns also line up in a terminal. */
export const tableText = ({ columns, rows }: Table): string => {
  const cells = [columns.map(({ title }) => title), ...rows].map(row => row.map(cell => cell.replaceAll('|', '\\|')))
  const widths = columns.map((_, index) => Math.max(3, ...cells.map(row => row[index]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    `| ${columns
      .map(({ align }, index) => {
        const text = row[index] ?? ''
        return align === 'left' ? text.padEnd(widths[index] ?? 0) : text.padStart(widths[index] ?? 0)
      })
      .join(' | ')} |`
  const rule = columns.map(({ align }, index) => {
    const dashes = '-'.repeat((widths[index] ?? 0) + 1)
    return align === 'left' ? `${dashes}-` : `${dashes}:`
  })
  const [head = '', ...body] = cells.map(line)
  return [head, `|${rule.join('|')}|`, ...body].join('\n')
}

/** Three significant digits; whole numbers keep all of theirs. */
export const toFigure = (value: number): string => {
  if (!Number.isFinite(value)) return '?'
  const size = Math.abs(value)
  const decimals = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2
  return value.toFixed(decimals).replace(/\B(?=(\d{3})+(?!\d))/g, size >= 10_000 ? ' ' : '')
}

/** The median with the lowest and the highest round. */
export const spreadText = ({ median, min, max }: Spread): string =>
  `${toFigure(median)} (${toFigure(min)}–${toFigure(max)})`

/** Megabytes of a million bytes. */
export const toMegabytes = (bytes: number): string => `${toFigure(bytes / 1e6)} MB`
