import { formatCount } from '../domain/count.ts'

interface PagerProps {
  /** From 1. */
  readonly page: number
  readonly count: number
  readonly hasNext: boolean
  /** In the singular. */
  readonly unit: string
  readonly onPrevious: () => void
  readonly onNext: () => void
}

/** Moves through pages whose number is unknown. A single page has no buttons. */
export const Pager = ({ page, count, hasNext, unit, onPrevious, onNext }: PagerProps) => {
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
          <button type="button" disabled={page === 1} onClick={onPrevious}>
            Previous
          </button>
          <button type="button" disabled={!hasNext} onClick={onNext}>
            Next
          </button>
        </div>
      )}
    </div>
  )
}
