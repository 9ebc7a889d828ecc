import { formatCount } from '../domain/count.ts'
import type { PageCursors } from './use-pages.ts'

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
