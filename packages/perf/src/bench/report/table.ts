/** Right: figures, which are compared by their last digits. */
export interface Column {
  readonly title: string
  readonly align: 'left' | 'right'
}

export interface Table {
  readonly columns: readonly Column[]
  readonly rows: readonly (readonly string[])[]
}

const GAP = '  '

/** Monospaced lines, each column as wide as its widest cell. */
export const tableText = ({ columns, rows }: Table): string => {
  const cells = [columns.map(column => column.title), ...rows]
  const widths = columns.map((_, index) => Math.max(...cells.map(row => row[index]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    columns
      .map(({ align }, index) => {
        const text = row[index] ?? ''
        return align === 'left' ? text.padEnd(widths[index] ?? 0) : text.padStart(widths[index] ?? 0)
      })
      .join(GAP)
      .trimEnd()
  const [head = '', ...body] = cells.map(line)
  return [head, widths.map(width => '-'.repeat(width)).join(GAP), ...body].join('\n')
}
