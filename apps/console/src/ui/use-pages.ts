import { useState } from 'preact/hooks'

/** The cursors of the pages up to the current one. A new key starts again at the first page. */
export interface PageCursors {
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
