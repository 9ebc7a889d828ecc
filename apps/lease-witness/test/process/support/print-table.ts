export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN
}

export const toFixed1 = (value: number): string => value.toFixed(1)

/** Prints the figures of a run as aligned columns. */
export const printTable = (title: string, rows: readonly (readonly (string | number)[])[]): void => {
  const text = rows.map(row => row.map(String))
  const widths = (text[0] ?? []).map((_, column) => Math.max(...text.map(row => row[column]?.length ?? 0)))
  const pad = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)
  const lines = text.map(row => `  ${row.map(pad).join('  ')}`)
  process.stdout.write(`\n${title}\n${lines.join('\n')}\n`)
}
