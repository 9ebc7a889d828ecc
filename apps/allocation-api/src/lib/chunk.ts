/** In as few parts as there can be in this order, each at most so large (unless one element alone is larger) and long. */
export const partsOf = <Element>(
  elements: readonly Element[],
  sizeOf: (element: Element) => number,
  largest: number,
  longest = Number.POSITIVE_INFINITY,
): Element[][] => {
  const parts: Element[][] = []
  let room = 0
  for (const element of elements) {
    const size = sizeOf(element)
    const last = parts.at(-1)
    if (!last || size > room || last.length >= longest) {
      parts.push([])
      room = largest
    }
    parts.at(-1)?.push(element)
    room -= size
  }
  return parts
}
