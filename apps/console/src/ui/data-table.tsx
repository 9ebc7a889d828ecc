import {
  type ColumnDef,
  createSortedRowModel,
  metaHelper,
  rowSortingFeature,
  sortFn_alphanumeric,
  sortFn_basic,
  tableFeatures,
  useTable,
} from '@tanstack/preact-table'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'

interface ColumnMeta {
  readonly label: string
  readonly class?: string | undefined
  readonly render: (row: unknown) => ComponentChildren
}

const features = tableFeatures({
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
  sortFns: { alphanumeric: sortFn_alphanumeric, basic: sortFn_basic },
  columnMeta: metaHelper<ColumnMeta>(),
})

export interface Column<Row> {
  readonly id: string
  readonly header: string
  readonly cell: (row: Row) => ComponentChildren
  /** Makes the column sortable, if the whole table is on the page. */
  readonly sortValue?: (row: Row) => string | number
  readonly class?: string
}

interface DataTableProps<Row> {
  /** What the table lists, for a screen reader. */
  readonly label: string
  /** The same array at every render, or the table is made again. */
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row) => string
}

/** Tables with more columns become lists of labelled values if they are narrow. */
const MAX_NARROW_COLUMNS = 3

interface SortOrder {
  readonly id: string
  readonly desc: boolean
}

const toSortKey = ({ id, desc }: SortOrder): string => `${desc ? 'desc' : 'asc'} ${id}`
const parseSortKey = (key: string): SortOrder[] => {
  const [direction, id = ''] = key.split(' ')
  return id === '' ? [] : [{ id, desc: direction === 'desc' }]
}

const arrows = { asc: ' ▲', desc: ' ▼' } as const
const ariaSort = { asc: 'ascending', desc: 'descending' } as const

/** A table. If it is narrow and has many columns, each row is a list of labelled values. */
export const DataTable = <Row extends object>({ label, columns, rows, rowKey }: DataTableProps<Row>) => {
  const definitions = useMemo(
    () =>
      columns.map(
        ({ id, header, cell, sortValue, class: className }): ColumnDef<typeof features, Row> => ({
          id,
          accessorFn: row => sortValue?.(row) ?? '',
          enableSorting: sortValue !== undefined,
          header,
          meta: { label: header, class: className, render: row => cell(row as Row) },
        }),
      ),
    [columns],
  )
  const table = useTable({ features, columns: definitions, data: rows as Row[], getRowId: rowKey })
  const isCollapsing = columns.length > MAX_NARROW_COLUMNS
  const [sorting] = table.state.sorting
  return (
    <div class="table-frame">
      {isCollapsing && columns.some(({ sortValue }) => sortValue !== undefined) && (
        // A list of labelled values has no headers to sort by.
        <label class="narrow-sort">
          Sort by
          <select
            value={sorting === undefined ? '' : toSortKey(sorting)}
            onChange={({ currentTarget: { value } }) => table.setSorting(parseSortKey(value))}
          >
            <option value="">the given order</option>
            {columns
              .filter(({ sortValue }) => sortValue !== undefined)
              .flatMap(({ id, header }) => [
                <option key={id} value={toSortKey({ id, desc: false })}>
                  {header}, ascending
                </option>,
                <option key={`${id} desc`} value={toSortKey({ id, desc: true })}>
                  {header}, descending
                </option>,
              ])}
          </select>
        </label>
      )}
      <table class={isCollapsing ? 'collapsing' : ''} aria-label={label}>
        <thead>
          {table.getHeaderGroups().map(group => (
            <tr key={group.id}>
              {group.headers.map(({ id, column }) => {
                const sorted = column.getIsSorted()
                const { label: text, class: className } = column.columnDef.meta ?? { label: '' }
                return (
                  <th
                    key={id}
                    scope="col"
                    class={className}
                    {...(sorted === false ? {} : { 'aria-sort': ariaSort[sorted] })}
                  >
                    {column.getCanSort() ? (
                      <button type="button" onClick={() => column.toggleSorting()}>
                        {text}
                        <span aria-hidden="true">{sorted === false ? '' : arrows[sorted]}</span>
                      </button>
                    ) : (
                      text || <span class="visually-hidden">Actions</span>
                    )}
                  </th>
                )
              })}
            </tr>
          ))}
        </thead>
        <tbody>
          {table.getRowModel().rows.map(row => (
            <tr key={row.id}>
              {row.getAllCells().map(({ id, column }) => {
                const meta = column.columnDef.meta
                return (
                  <td key={id} class={meta?.class} data-label={meta?.label}>
                    <div>{meta?.render(row.original)}</div>
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
