import type { CDPSession, Page } from 'playwright-core'

/** Everything that the browser keeps for the page, as text. */
const readBrowserStorage = async (page: Page, session: CDPSession): Promise<string> => {
  const kept = await page.evaluate(async () => ({
    local: { ...localStorage },
    session: { ...sessionStorage },
    cookie: document.cookie,
    databases: await indexedDB.databases(),
    // A page that was loaded over plain HTTP has none.
    caches: 'caches' in globalThis ? await caches.keys() : [],
    state: history.state,
    address: location.href,
    html: document.documentElement.outerHTML,
    // Neither the markup nor the heap of the scripts has what was typed.
    typed: [...document.querySelectorAll('input, textarea')].map(element => (element as HTMLInputElement).value),
  }))
  const { entries } = await session.send('Page.getNavigationHistory')
  return JSON.stringify([kept, entries])
}

const takeHeapSnapshot = async (session: CDPSession): Promise<string> => {
  const chunks: string[] = []
  session.on('HeapProfiler.addHeapSnapshotChunk', ({ chunk }) => chunks.push(chunk))
  await session.send('HeapProfiler.enable')
  await session.send('HeapProfiler.collectGarbage')
  await session.send('HeapProfiler.takeHeapSnapshot', { reportProgress: false })
  return chunks.join('')
}

/** The secrets that the browser has kept: in a storage, in the history, or in the memory of the page after a collection. */
export const findKept = async (page: Page, secrets: readonly string[]): Promise<readonly string[]> => {
  const session = await page.context().newCDPSession(page)
  const storage = await readBrowserStorage(page, session)
  const heap = await takeHeapSnapshot(session)
  await session.detach()
  if (heap.length < 100_000) throw new Error('the heap snapshot is incomplete')
  return secrets.filter(secret => storage.includes(secret) || heap.includes(secret))
}
