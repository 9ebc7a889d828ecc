/**
 * The distance of Damerau and Levenshtein in its restricted form: how many characters to insert, delete, replace or
 * exchange with their neighbours, each part of a word at most once.
 */
export const editDistance = (a: string, b: string): number => {
  let beforeLast: readonly number[] = []
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isExchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const exchanged = isExchanged ? (beforeLast[j - 2] ?? 0) + 1 : replaced
      row.push(Math.min(replaced, exchanged, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    beforeLast = last
    last = row
  }
  return last.at(-1) ?? 0
}

/** The candidate with the fewest edits to the word; of several, the first. Undefined: there are no candidates. */
export const findNearest = (word: string, candidates: readonly string[]): string | undefined =>
  candidates
    .map(candidate => ({ candidate, edits: editDistance(word, candidate) }))
    .toSorted((a, b) => a.edits - b.edits)
    .at(0)?.candidate
