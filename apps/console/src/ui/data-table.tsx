import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { PlanRow } from '../domain/record-diff.ts'
import { type SortOrder, sortRows, toggleOrder } from '../domain/sort.ts'
import { toVisibleText } from '../domain/text.ts'

export interface Column<Row> {
  /** Unique in the table. Empty: the column has the actions of the row. */
  readonly header: string
  readonly cell: (row: Row) => ComponentChildren
  /** Makes the column sortable, if the whole table is on the page. */
  readonly sortValue?: (row: Row) => string | number
  readonly class?: string
}

interface DataTableProps<Row> {
  /** What the table lists, for a screen reader. */
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row) => string
}

/** Tables with more columns become lists of labelled values if they are narrow. */
const MAX_NARROW_COLUMNS = 3

const arrows = { ascending: ' ▲', descending: ' ▼' } as const
const directions = ['ascending', 'descending'] as const

interface SortSelectProps<Row> {
  readonly columns: readonly Column<Row>[]
  readonly order: SortOrder | null
  readonly onChange: (order: SortOrder | null) => void
}

/** A list of labelled values has no headers to sort by. */
const SortSelect = <Row,>({ columns, order, onChange }: SortSelectProps<Row>) => {
  const orders = columns.flatMap(({ header }) => directions.map(direction => ({ header, direction })))
  const selected = orders.findIndex(
    ({ header, direction }) => header === order?.header && direction === order.direction,
  )
  return (
    <label class="narrow-sort">
      Sort by
      <select value={selected} onChange={event => onChange(orders[Number(event.currentTarget.value)] ?? null)}>
        <option value={-1}>the given order</option>
        {orders.map(({ header, direction }, index) => (
          <option key={`${header} ${direction}`} value={index}>
            {header}, {direction}
          </option>
        ))}
      </select>
    </label>
  )
}

/** A table. If it is narrow and has many columns, each row is a list of labelled values. */
export const DataTable = <Row,>({ label, columns, rows, rowKey }: DataTableProps<Row>) => {
  const [order, setOrder] = useState<SortOrder | null>(null)
  const sortable = columns.filter(({ sortValue }) => sortValue !== undefined)
  const sortValue = columns.find(({ header }) => header === order?.header)?.sortValue
  const isCollapsing = columns.length > MAX_NARROW_COLUMNS
  return (
    <div class="table-frame">
      {isCollapsing && sortable.length > 0 && <SortSelect columns={sortable} order={order} onChange={setOrder} />}
      <table class={isCollapsing ? 'collapsing' : ''} aria-label={label}>
        <thead>
          <tr>
            {columns.map(column => {
              const { header } = column
              const sorted = order?.header === header ? order.direction : undefined
              return (
                <th key={header} scope="col" class={column.class} aria-sort={sorted}>
                  {column.sortValue ? (
                    <button type="button" onClick={() => setOrder(toggleOrder(order, header))}>
                      {header}
                      <span aria-hidden="true">{sorted && arrows[sorted]}</span>
                    </button>
                  ) : (
                    header || <span class="visually-hidden">Actions</span>
                  )}
                </th>
              )
            })}
          </tr>
        </thead>
        <tbody>
          {(order && sortValue ? sortRows(rows, sortValue, order.direction) : rows).map(row => (
            <tr key={rowKey(row)}>
              {columns.map(({ header, cell, class: className }) => (
                <td key={header} class={className} data-label={header}>
                  <div>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Changes as a diff: the sign says what is written or deleted, without its colour. */
export const PlanTable = ({ label, rows }: { readonly label: string; readonly rows: readonly PlanRow[] }) => (
  <div class="table-frame">
    <table class="diff" aria-label={label}>
      <thead>
        <tr>
          <th scope="col" class="sign">
            <span class="visually-hidden">Change</span>
          </th>
          <th scope="col">Name</th>
          <th scope="col">Type</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ sign, kind, name, type, text, before }) => (
          <tr key={`${sign} ${name} ${type}`} class={kind}>
            <td class="sign">
              <span class="visually-hidden">{kind}</span>
              <span aria-hidden="true">{sign}</span>
            </td>
            <td class="owner">
              <code>{toVisibleText(name)}</code>
            </td>
            <td class="type">{type}</td>
            <td>
              {before !== undefined && (
                <>
                  <del>
                    <code>{toVisibleText(before)}</code>
                  </del>{' '}
                  →{' '}
                </>
              )}
              {text === '' ? <span class="muted">deleted</span> : <code>{toVisibleText(text)}</code>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
