export interface Lines {
  push(chunk: string): void
  /** The last line, when nothing ended it. */
  end(): void
}

/**
 * Cuts a stream into lines. Of one longer than `limit` characters the beginning is given, once it has ended, as cut;
 * the rest is not kept.
 */
export const createLines = (limit: number, onLine: (line: string, isCut: boolean) => void): Lines => {
  let kept = ''
  let isCut = false
  const keep = (piece: string) => {
    const room = limit - kept.length
    if (piece.length > room) isCut = true
    kept += piece.length > room ? piece.slice(0, room) : piece
  }
  const give = () => {
    const line = kept.endsWith('\r') ? kept.slice(0, -1) : kept
    const wasCut = isCut
    kept = ''
    isCut = false
    onLine(line, wasCut)
  }
  return {
    push: chunk => {
      const pieces = chunk.split('\n')
      for (const [index, piece] of pieces.entries()) {
        if (index > 0) give()
        keep(piece)
      }
    },
    end: () => {
      if (kept) give()
    },
  }
}
