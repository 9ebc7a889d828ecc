/**
 * Splits a list into as few chunks as its order allows. The sizes in a chunk add up to at most `maxSize`, unless its only
 * element is larger, and a chunk has at most `maxLength` elements.
 */
export const chunkBySize = <Element>(
  elements: readonly Element[],
  sizeOf: (element: Element) => number,
  maxSize: number,
  maxLength = Number.POSITIVE_INFINITY,
): Element[][] => {
  const chunks: Element[][] = []
  let room = 0
  for (const element of elements) {
    const size = sizeOf(element)
    const last = chunks.at(-1)
    if (!last || size > room || last.length >= maxLength) {
      chunks.push([])
      room = maxSize
    }
    chunks.at(-1)?.push(element)
    room -= size
  }
  return chunks
}
