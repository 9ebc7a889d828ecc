import type { Spread } from './stats.ts'

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
