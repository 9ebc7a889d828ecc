/** Counts a text in bytes that come in pieces of any size, and keeps no more of them than the text is long. */
export const createCounter = (
  text: string,
): { readonly add: (piece: Buffer) => void; readonly count: () => number } => {
  const needle = Buffer.from(text)
  let tail = Buffer.alloc(0)
  let found = 0

  const countIn = (bytes: Buffer) => {
    for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + needle.length)) found += 1
  }
  return {
    add(piece) {
      const keep = needle.length - 1
      // The seam holds at most what neither side holds whole.
      countIn(Buffer.concat([tail, piece.subarray(0, keep)]))
      countIn(piece)
      tail = Buffer.from(Buffer.concat([tail, piece.subarray(-keep)]).subarray(-keep))
    },
    count: () => found,
  }
}
