import type { ComponentChildren } from 'preact'
import { type Resource, type ResourceOptions, useResource } from '../api/resource.ts'
import { type Column, DataTable } from './data-table.tsx'
import { Loaded } from './feedback.tsx'
import { Pager } from './pager.tsx'
import { Panel } from './shell.tsx'
import { type PageCursors, usePages } from './use-pages.ts'

/** A list that the service returns page by page. */
export interface PagedList<Page> extends Resource<Page> {
  readonly pages: PageCursors
}

/** Reads the current page of a list. The rows stay on the page until those of another search are there. */
export const usePagedList = <Page,>(
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page>,
  { key, ...options }: ResourceOptions,
): PagedList<Page> => {
  const pages = usePages(key)
  const { cursor } = pages
  const resource = useResource(signal => load(cursor, signal), {
    ...options,
    key: `${key} ${cursor ?? ''}`,
    keepsPrevious: true,
  })
  return { ...resource, pages }
}

interface ListPanelProps<Page, Row> {
  readonly title: string
  /** What the table lists, for a screen reader. */
  readonly label?: string
  readonly list: PagedList<Page>
  readonly toRows: (page: Page) => readonly Row[]
  readonly columns: readonly Column<Row>[]
  readonly rowKey: (row: Row) => string
  /** Of a row, in the singular. */
  readonly unit: string
  /** Instead of a table without rows. */
  readonly renderEmpty: (page: Page) => ComponentChildren
  readonly aside?: ComponentChildren
}

/** A list with its table and its pages. */
export const ListPanel = <Page extends { readonly nextCursor?: string | undefined }, Row>(
  props: ListPanelProps<Page, Row>,
) => {
  const { title, label = title, list, toRows, columns, rowKey, unit, renderEmpty, aside } = props
  return (
    <Panel title={title} hasPadding={false} aside={aside}>
      <Loaded resource={list}>
        {page => {
          const rows = toRows(page)
          if (rows.length === 0) return renderEmpty(page)
          return (
            <>
              <DataTable label={label} columns={columns} rows={rows} rowKey={rowKey} />
              <Pager pages={list.pages} count={rows.length} unit={unit} nextCursor={page.nextCursor} />
            </>
          )
        }}
      </Loaded>
    </Panel>
  )
}
