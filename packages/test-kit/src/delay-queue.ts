export interface DelayQueueOptions<Item> {
  readonly send: (item: Item) => void
  /** Milliseconds, monotonic. */
  readonly now: () => number
  readonly after: (ms: number, then: () => void) => void
}

/**
 * Sends each item after its delay and keeps the order of the items, even if the delay becomes shorter or a busy machine sends
 * a due item late.
 */
export const createDelayQueue = <Item>({ send, now, after }: DelayQueueOptions<Item>) => {
  const waiting: { readonly item: Item; readonly due: number }[] = []
  const wait = () => {
    const [first] = waiting
    if (first) after(Math.max(0, Math.ceil(first.due - now())), sendDue)
  }
  const sendDue = () => {
    for (let first = waiting[0]; first && first.due <= now(); first = waiting[0]) {
      waiting.shift()
      send(first.item)
    }
    wait()
  }
  return (item: Item, delayMs: number): void => {
    if (delayMs === 0 && waiting.length === 0) send(item)
    else if (waiting.push({ item, due: now() + delayMs }) === 1) wait()
  }
}
