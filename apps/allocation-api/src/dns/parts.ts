/** In as few parts as there can be in this order, each at most so large (unless one element alone is larger). */
export const partsOf = <Element>(
  elements: readonly Element[],
  sizeOf: (element: Element) => number,
  largest: number,
): Element[][] => {
  const parts: Element[][] = []
  let room = 0
  for (const element of elements) {
    const size = sizeOf(element)
    if (parts.length === 0 || size > room) {
      parts.push([])
      room = largest
    }
    parts.at(-1)?.push(element)
    room -= size
  }
  return parts
}
