interface PagerProps {
  /** From 1. */
  readonly page: number
  readonly count: number
  readonly hasNext: boolean
  readonly unit: string
  readonly onPrevious: () => void
  readonly onNext: () => void
}

/** Moves through pages whose number is unknown. */
export const Pager = ({ page, count, hasNext, unit, onPrevious, onNext }: PagerProps) => (
  <div class="pager">
    <span aria-live="polite">
      Page {page}: {count.toLocaleString('en')} {unit}
      {hasNext ? ', more follow' : ''}
    </span>
    <div class="actions">
      <button type="button" disabled={page === 1} onClick={onPrevious}>
        Previous
      </button>
      <button type="button" disabled={!hasNext} onClick={onNext}>
        Next
      </button>
    </div>
  </div>
)
