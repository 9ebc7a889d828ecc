export interface Axis {
  /** With its unit. */
  readonly label: string
  readonly kind: 'log' | 'linear'
  /** Where lines stand and figures are written. Absent: round figures, as they fit. */
  readonly ticks?: readonly number[]
}

export interface Scale {
  /** In pixels; `from` is where the smallest lies. */
  readonly place: (value: number) => number
  readonly ticks: readonly number[]
}

/** Of a run of ten, the figures that are read most easily. */
const ROUND = [1, 2, 5, 10]
const FEW = 8

/** The next round figure: not below the value when `up`, else not above. */
const roundTo = (value: number, up: boolean): number => {
  const decade = 10 ** Math.floor(Math.log10(value))
  const steps = up ? ROUND : ROUND.toReversed()
  // What is round already is off by an error of the division at most.
  const slack = 1e-9
  const step = steps.find(round => (up ? round * decade >= value * (1 - slack) : round * decade <= value * (1 + slack)))
  return Number(((step ?? 1) * decade).toPrecision(1))
}

const logTicks = (from: number, to: number): number[] => {
  const all: number[] = []
  for (let decade = Math.floor(Math.log10(from)); 10 ** decade <= to; decade += 1) {
    for (const round of [1, 2, 5]) all.push(Number((round * 10 ** decade).toPrecision(1)))
  }
  const within = all.filter(tick => tick >= from && tick <= to)
  return within.length > FEW + 2 ? within.filter(tick => Number.isInteger(Math.log10(tick))) : within
}

const linearTicks = (from: number, to: number): number[] => {
  const step = roundTo((to - from) / FEW, true)
  const first = Math.ceil(from / step)
  const count = Math.floor(to / step + 1e-9) - first + 1
  return Array.from({ length: count }, (_, index) => Number(((first + index) * step).toPrecision(12)))
}

/**
 * A scale over which all values lie: a logarithmic one from round figure to round figure, a linear one from zero. Where
 * ticks are given, in ascending order, it goes from one of them to another where they enclose the values.
 */
export const scaleOf = (
  { kind, ticks }: Axis,
  values: readonly number[],
  [from, to]: readonly [number, number],
): Scale => {
  const usable = values.filter(value => Number.isFinite(value) && (kind === 'linear' || value > 0))
  const [low, high] = usable.length > 0 ? [Math.min(...usable), Math.max(...usable)] : [1, 10]
  if (kind === 'linear') {
    const top = high > 0 ? (linearTicks(0, high * 1.15).at(-1) ?? high) : 1
    const end = Math.max(top, high)
    const place = (value: number) => from + (value / end) * (to - from)
    return { place, ticks: (ticks ?? linearTicks(0, end)).filter(tick => tick <= end) }
  }
  const below = (ticks ?? []).findLast(tick => tick <= low) ?? roundTo(low, false)
  const above = (ticks ?? []).find(tick => tick >= high) ?? roundTo(high, true)
  const [start, end] = [below, above > below ? above : below * 2]
  const place = (value: number) =>
    from + (Math.log(Math.max(value, start) / start) / Math.log(end / start)) * (to - from)
  return { place, ticks: (ticks ?? logTicks(start, end)).filter(tick => tick >= start && tick <= end) }
}

/** Groups of three, parted by a thin space that does not break. */
export const tickText = (value: number): string => String(value).replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, '\u202f')
