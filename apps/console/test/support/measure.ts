import type { Page } from 'playwright-core'

const BYTES_PER_MIB = 1_048_576

/** What a page holds after a forced collection. */
export interface PageMemory {
  /** JavaScript objects in use. */
  readonly heapMib: number
  /** Nodes of the document, and those that scripts still refer to. */
  readonly domNodes: number
}

export const readMemory = async (page: Page): Promise<PageMemory> => {
  const session = await page.context().newCDPSession(page)
  try {
    await session.send('HeapProfiler.collectGarbage')
    const { usedSize } = await session.send('Runtime.getHeapUsage')
    const { nodes } = await session.send('Memory.getDOMCounters')
    return { heapMib: usedSize / BYTES_PER_MIB, domNodes: nodes }
  } finally {
    await session.detach()
  }
}

/**
 * Milliseconds from the start of the navigation until the element is there and the main thread is idle, so that the page
 * responds to input.
 */
export const openUntilInteractive = async (page: Page, url: string, selector: string): Promise<number> => {
  await page.goto(url, { waitUntil: 'commit' })
  return await page.evaluate(
    wanted =>
      new Promise<number>(resolve => {
        const check = () => {
          if (document.querySelector(wanted)) requestIdleCallback(() => resolve(performance.now()))
          else requestAnimationFrame(check)
        }
        check()
      }),
    selector,
  )
}

/** Bytes of script that the page has loaded, as they are on the wire. */
export const readScriptBytes = (page: Page): Promise<number> =>
  page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .filter((entry): entry is PerformanceResourceTiming => entry instanceof PerformanceResourceTiming)
      .filter(({ name }) => name.endsWith('.js'))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
  )
