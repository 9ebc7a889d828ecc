import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { type Resource, type ResourceOptions, useResource } from '../api/resource.ts'
import { formatCount } from '../domain/text.ts'
import { type Column, DataTable } from './data-table.tsx'
import { Loaded } from './feedback.tsx'
import { Panel } from './shell.tsx'

/** The cursors of the pages up to the current one. A new key starts again at the first page. */
interface PageCursors {
  readonly cursor: string | undefined
  /** From 1. */
  readonly page: number
  readonly next: (cursor: string | undefined) => void
  readonly previous: () => void
}

export const usePages = (key: string): PageCursors => {
  const [state, setState] = useState<{ key: string; cursors: readonly string[] }>({ key, cursors: [] })
  const cursors = state.key === key ? state.cursors : []
  return {
    cursor: cursors.at(-1),
    page: cursors.length + 1,
    next: cursor => {
      if (cursor !== undefined) setState({ key, cursors: [...cursors, cursor] })
    },
    previous: () => setState({ key, cursors: cursors.slice(0, -1) }),
  }
}

interface PagerProps {
  readonly pages: PageCursors
  /** What the page has. */
  readonly count: number
  /** In the singular. */
  readonly unit: string
  /** Undefined on the last page. */
  readonly nextCursor: string | undefined
}

/** Moves through pages whose number is unknown. A single page has no buttons. */
export const Pager = ({ pages: { page, next, previous }, count, unit, nextCursor }: PagerProps) => {
  const hasNext = nextCursor !== undefined
  const hasPages = page > 1 || hasNext
  return (
    <div class="pager">
      <span aria-live="polite">
        {hasPages ? `Page ${page}: ` : ''}
        {formatCount(count, unit)}
        {hasNext ? ', more follow' : ''}
      </span>
      {hasPages && (
        <div class="actions">
          <button type="button" disabled={page === 1} onClick={previous}>
            Previous
          </button>
          <button type="button" disabled={!hasNext} onClick={() => next(nextCursor)}>
            Next
          </button>
        </div>
      )}
    </div>
  )
}

/** A list that the service returns page by page. */
interface PagedList<Page> extends Resource<Page> {
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
          // A page whose rows are all filtered out has a next one.
          if (rows.length === 0 && page.nextCursor === undefined) return renderEmpty(page)
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
