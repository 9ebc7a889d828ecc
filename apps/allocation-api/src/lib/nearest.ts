/** The Levenshtein distance: how many characters to insert, delete or replace. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1]
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (char === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** The candidate with the fewest edits to the word; of several, the first. Undefined: there are no candidates. */
export const findNearest = (word: string, candidates: readonly string[]): string | undefined =>
  candidates
    .map(candidate => ({ candidate, edits: distance(word, candidate) }))
    .toSorted((a, b) => a.edits - b.edits)
    .at(0)?.candidate
