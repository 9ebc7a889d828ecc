import type { Operation } from './history.ts'

/** Counts by kind and status, and the pace, in a line. */
export const summary = (history: readonly Operation[]): string => {
  const start = history.reduce((least, operation) => Math.min(least, operation.start), Number.POSITIVE_INFINITY)
  const end = history.reduce((most, operation) => Math.max(most, operation.end), 0)
  const seconds = (end - start) / 1_000
  const counts = Map.groupBy(history, ({ asked, told }) => `${asked.kind} ${told?.status ?? 'unanswered'}`)
  const parts = [...counts].map(([what, { length }]) => `${what}: ${length}`).toSorted()
  const pace = `${history.length} operations in ${seconds.toFixed(1)} s, ${Math.round(history.length / seconds)}/s`
  return `${pace}; ${parts.join(', ')}`
}
