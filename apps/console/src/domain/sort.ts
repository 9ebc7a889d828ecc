export type SortDirection = 'ascending' | 'descending'

export interface SortOrder {
  /** Of the column. */
  readonly header: string
  readonly direction: SortDirection
}

/** A number in a text counts as a number: `node-2` comes before `node-10`. */
const { compare } = new Intl.Collator('en', { numeric: true })

const compareValues = (a: string | number, b: string | number): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : compare(String(a), String(b))

/** Sorts by a text or a number of each row. Rows with equal values keep their order. */
export const sortRows = <Row>(
  rows: readonly Row[],
  toValue: (row: Row) => string | number,
  direction: SortDirection,
): readonly Row[] => {
  const sign = direction === 'ascending' ? 1 : -1
  return rows.toSorted((a, b) => sign * compareValues(toValue(a), toValue(b)))
}

/** The order after a click on the header of a column: ascending, descending, and then the given order. */
export const toggleOrder = (order: SortOrder | null, header: string): SortOrder | null => {
  if (order?.header !== header) return { header, direction: 'ascending' }
  return order.direction === 'ascending' ? { header, direction: 'descending' } : null
}
