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

/**
 * The candidate with the fewest edits to the word, whatever the case; of several, the first. Undefined: there are no candidates.
 */
export const findNearest = (word: string, candidates: readonly string[]): string | undefined =>
  candidates
    .map(candidate => ({ candidate, edits: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .toSorted((a, b) => a.edits - b.edits)
    .at(0)?.candidate

/** A longer name may be a token that a client put in the wrong place. */
const MAX_QUOTED = 30

const quote = (name: string): string =>
  name.length > MAX_QUOTED ? `of ${name.length} characters` : JSON.stringify(name)

/**
 * Why the query of a URL is not one of an operation that takes these parameters: a sentence with the first parameter that
 * it does not take, and the nearest that it does. Undefined: it takes them all. Their values are not looked at.
 */
export const explainUnknownParameter = (url: string, known: readonly string[]): string | undefined => {
  const start = url.indexOf('?')
  if (start === -1) return undefined
  const unknown = [...new URLSearchParams(url.slice(start)).keys()].find(name => !known.includes(name))
  if (unknown === undefined) return undefined
  const nearest = findNearest(unknown, known)
  return nearest === undefined
    ? `The parameter ${quote(unknown)} is unknown: this request takes none, so remove it.`
    : `The parameter ${quote(unknown)} is unknown: correct it to ${nearest}, or remove it.`
}
