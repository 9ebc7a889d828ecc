import { type Axis, scaleOf, tickText } from './scale.ts'
import { STYLE } from './style.ts'
import { element, type Node, pointsText } from './svg.ts'

/** What the rounds gave at one place. */
export interface Point {
  readonly x: number
  readonly median: number
  readonly min: number
  readonly max: number
}

export interface Series {
  readonly name: string
  readonly points: readonly Point[]
  /** Series of one colour belong together, and are told apart by being dashed. From 0. */
  readonly colour: number
  readonly dashed?: boolean
}

/** A line that was not measured: what is aimed at, or would be ideal. */
export interface Reference {
  readonly name: string
  readonly points: readonly (readonly [number, number])[]
}

export interface Plot {
  readonly title: string
  readonly x: Axis
  readonly y: Axis
  readonly series: readonly Series[]
  readonly references?: readonly Reference[]
}

const SIZE = { width: 880, height: 460 }
const AREA = { left: 74, right: 660, top: 52, bottom: 396 }
const LEGEND = { x: 684, y: 70, line: 24, sample: 30 }
const MARK = 3.6

/** One shape for each colour: who sees no colours sees these. */
const mark = (colour: number, x: number, y: number): Node => {
  const own = { class: `c${colour} mark` }
  const around = (corners: readonly (readonly [number, number])[]) =>
    element('polygon', { ...own, points: pointsText(corners.map(([dx, dy]) => [x + dx * MARK, y + dy * MARK])) })
  if (colour % 4 === 0) return element('circle', { ...own, cx: x, cy: y, r: MARK })
  if (colour % 4 === 1)
    return around([
      [-1, -1],
      [1, -1],
      [1, 1],
      [-1, 1],
    ])
  if (colour % 4 === 2)
    return around([
      [0, -1.3],
      [1.2, 0.9],
      [-1.2, 0.9],
    ])
  return around([
    [0, -1.4],
    [1.4, 0],
    [0, 1.4],
    [-1.4, 0],
  ])
}

const dashes = (dashed: boolean | undefined) => (dashed ? '6 4' : undefined)

/** Medians as lines, from the least to the most of the rounds as bands. The same plot gives the same text, byte for byte. */
export const plotSvg = ({ title, x, y, series, references = [] }: Plot): string => {
  const points = series.flatMap(one => one.points)
  const lines = references.flatMap(reference => reference.points)
  const across = scaleOf(
    x,
    [...points.map(point => point.x), ...lines.map(([at]) => at)],
    [AREA.left + 14, AREA.right - 14],
  )
  const up = scaleOf(
    y,
    [...points.flatMap(point => [point.min, point.max]), ...lines.map(([, value]) => value)],
    [AREA.bottom, AREA.top],
  )
  const at = (of: number, value: number): readonly [number, number] => [across.place(of), up.place(value)]

  const grid: Node[] = [
    ...up.ticks.flatMap(tick => [
      element('line', { class: 'grid', x1: AREA.left, x2: AREA.right, y1: up.place(tick), y2: up.place(tick) }),
      element('text', { class: 'small', x: AREA.left - 8, y: up.place(tick) + 4, 'text-anchor': 'end' }, [
        tickText(tick),
      ]),
    ]),
    ...across.ticks.flatMap(tick => [
      element('line', { class: 'grid', x1: across.place(tick), x2: across.place(tick), y1: AREA.top, y2: AREA.bottom }),
      element('text', { class: 'small', x: across.place(tick), y: AREA.bottom + 18, 'text-anchor': 'middle' }, [
        tickText(tick),
      ]),
    ]),
    element('path', { class: 'axis', d: `M${AREA.left} ${AREA.top}V${AREA.bottom}H${AREA.right}` }),
  ]
  const middle = { x: (AREA.left + AREA.right) / 2, y: (AREA.top + AREA.bottom) / 2 }
  const labels: Node[] = [
    element('text', { class: 'title', x: AREA.left, y: 28 }, [title]),
    element('text', { x: middle.x, y: SIZE.height - 18, 'text-anchor': 'middle' }, [x.label]),
    element('text', { x: 20, y: middle.y, 'text-anchor': 'middle', transform: `rotate(-90 20 ${middle.y})` }, [
      y.label,
    ]),
  ]
  const bands = series.map(({ points: own, colour }) =>
    element('polygon', {
      class: `c${colour} band`,
      points: pointsText([
        ...own.map(point => at(point.x, point.max)),
        ...own.toReversed().map(point => at(point.x, point.min)),
      ]),
    }),
  )
  const ideal = references.map(reference =>
    element('polyline', {
      class: 'reference',
      points: pointsText(reference.points.map(([of, value]) => at(of, value))),
    }),
  )
  const medians = series.flatMap(({ points: own, colour, dashed }) => [
    element('polyline', {
      class: `c${colour} line`,
      'stroke-dasharray': dashes(dashed),
      points: pointsText(own.map(point => at(point.x, point.median))),
    }),
    ...own.map(point => mark(colour, ...at(point.x, point.median))),
  ])
  const legend = [...series, ...references].flatMap((one, index): Node[] => {
    const line = LEGEND.y + index * LEGEND.line
    const ends = { x1: LEGEND.x, x2: LEGEND.x + LEGEND.sample, y1: line, y2: line }
    const sample =
      'colour' in one
        ? [
            element('line', { class: `c${one.colour} line`, 'stroke-dasharray': dashes(one.dashed), ...ends }),
            mark(one.colour, LEGEND.x + LEGEND.sample / 2, line),
          ]
        : [element('line', { class: 'reference', ...ends })]
    return [...sample, element('text', { x: LEGEND.x + LEGEND.sample + 8, y: line + 4 }, [one.name])]
  })
  const svg = element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${SIZE.width} ${SIZE.height}`,
      width: SIZE.width,
      height: SIZE.height,
      role: 'img',
      'aria-label': title,
    },
    [
      element('style', {}, [STYLE]),
      element('rect', { class: 'ground', ...SIZE }),
      ...grid,
      ...labels,
      ...bands,
      ...ideal,
      ...medians,
      ...legend,
    ],
  )
  // A line an element, so that what has changed can be read.
  return `${svg.markup.replaceAll(/(?<=>)(?=<(?!\/text))/g, '\n')}\n`
}
