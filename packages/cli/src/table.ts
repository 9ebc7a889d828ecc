import { type Colour, type Paint, padEnd, toPlainLine, toWidth, truncate } from './text.ts'

export interface Column<Row> {
  readonly header: string
  readonly value: (row: Row) => string | number | undefined
  readonly colour?: (row: Row) => Colour | undefined
  /** Never shortened: an argument for another command. */
  readonly isFirm?: boolean
}

const GAP = 2
/** A column is not made narrower than this, or than its header if that is shorter. */
const MIN_COLUMN_WIDTH = 8

/** An absent or empty value. */
const NONE = '-'

const toCell = (value: string | number | undefined): string =>
  value === undefined || value === '' ? NONE : toPlainLine(String(value))

const sum = (widths: readonly number[]): number => widths.reduce((total, width) => total + width, 0)

/**
 * Makes the widest columns narrower until a row fits. `available` is the width of the terminal; null: no limit. If the
 * smallest widths do not fit either, the rows are wider than the terminal. The widths of `firm` columns stay.
 */
export const fitWidths = (
  natural: readonly number[],
  available: number | null,
  firm: readonly boolean[] = [],
): number[] => {
  if (available !== null && firm.includes(true)) {
    const fixed = natural.filter((_, i) => firm[i])
    const others = natural.filter((_, i) => !firm[i])
    const fitted = fitWidths(others, available - sum(fixed) - GAP * fixed.length)
    return natural.map((width, i) => (firm[i] ? width : (fitted.shift() ?? width)))
  }
  const widths = [...natural]
  if (available === null) return widths
  const space = available - GAP * (widths.length - 1)
  while (sum(widths) > space) {
    const widest = Math.max(...widths)
    if (widest <= MIN_COLUMN_WIDTH) break
    const next = Math.max(MIN_COLUMN_WIDTH, ...widths.filter(width => width < widest))
    const columns = widths.filter(width => width === widest).length
    // All widest columns become as wide as the next one, or as narrow as needed.
    const needed = Math.ceil((sum(widths) - space) / columns)
    const target = Math.max(next, widest - needed)
    for (const [i, width] of widths.entries()) if (width === widest) widths[i] = target
    if (target === widest) break
  }
  // The division above can leave a few columns over.
  for (let spare = space - sum(widths), i = 0; spare > 0 && i < widths.length; i += 1) {
    const missing = Math.min(spare, (natural[i] ?? 0) - (widths[i] ?? 0))
    widths[i] = (widths[i] ?? 0) + missing
    spare -= missing
  }
  return widths
}

export interface TableOptions {
  /** Columns of the terminal; null: the output is not a terminal, and nothing is shortened. */
  readonly width: number | null
  readonly paint: Paint
}

/**
 * Formats rows in batches, so that a long list does not need the memory of all its rows. The first batch decides the widths;
 * a wider cell of a later batch moves the cells after it, or is shortened on a terminal unless its column is firm.
 */
export const createTable = <Row>(columns: readonly Column<Row>[], { width, paint }: TableOptions) => {
  let widths: readonly number[] | undefined
  const format = (cells: readonly string[], colours: readonly (Colour | undefined)[]): string =>
    cells
      .map((cell, i) => {
        const limit = widths?.[i] ?? 0
        const text = width === null || columns[i]?.isFirm ? cell : truncate(cell, limit)
        const padding = i === cells.length - 1 ? '' : padEnd('', limit - toWidth(text))
        return paint(text, colours[i]) + padding
      })
      .join(' '.repeat(GAP))
      .trimEnd()
  return (rows: readonly Row[]): string[] => {
    const cells = rows.map(row => columns.map(({ value }) => toCell(value(row))))
    const isFirst = widths === undefined
    widths ??= fitWidths(
      columns.map(({ header }, i) => Math.max(toWidth(header), ...cells.map(row => toWidth(row[i] ?? '')))),
      width,
      columns.map(({ isFirm }) => isFirm === true),
    )
    const header = format(
      columns.map(({ header }) => header),
      columns.map(() => 'bold' as const),
    )
    const lines = cells.map((row, n) =>
      format(
        row,
        columns.map(({ colour }) => {
          const item = rows[n]
          return item === undefined ? undefined : colour?.(item)
        }),
      ),
    )
    return isFirst ? [header, ...lines] : lines
  }
}

/** Name and value of one field of an object. */
export type Field = readonly [name: string, value: string | number | undefined, colour?: Colour | undefined]

/** One line per field that has a value. Values are never shortened: a terminal wraps them. */
export const formatFields = (fields: readonly Field[], paint: Paint): string[] => {
  const present = fields.filter(([, value]) => value !== undefined && value !== '')
  const width = Math.max(0, ...present.map(([name]) => toWidth(name)))
  return present.map(([name, value, colour]) => `${padEnd(`${name}:`, width + 1)}  ${paint(toCell(value), colour)}`)
}
