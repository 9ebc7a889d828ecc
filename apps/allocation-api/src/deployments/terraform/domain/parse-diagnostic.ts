import { flat } from './sanitize.ts'

/**
 * The first error in what a command without machine-readable output says, on one line: the summary, and the paragraphs
 * up to the next diagnostic. Null: there is none.
 */
export const plainReason = (lines: readonly string[]): string | null => {
  const start = lines.findIndex(line => line.startsWith('Error: '))
  if (start < 0) return null
  const [summary = '', ...rest] = lines.slice(start)
  const next = rest.findIndex(line => /^(?:Error|Warning): /.test(line))
  const detail = flat((next < 0 ? rest : rest.slice(0, next)).join(' '))
  return [flat(summary.slice('Error: '.length)), detail].filter(Boolean).join(': ')
}
