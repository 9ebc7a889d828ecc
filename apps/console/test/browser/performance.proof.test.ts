import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { MAX_FIRST_PAGE_BYTES } from '../../scripts/build.ts'
import { MAX_LINES } from '../../src/domain/log-buffer.ts'
import { openPage, signIn } from '../support/browser.ts'
import { seedDeployment, seedNames } from '../support/seed.ts'
import { skipsBrowser, useConsoleSuite } from '../support/suite.ts'

const BYTES_PER_MIB = 1_048_576

/** What a page holds after a forced collection. */
interface PageMemory {
  /** JavaScript objects in use. */
  readonly heapMib: number
  /** Nodes of the document, and those that scripts still refer to. */
  readonly domNodes: number
}

const readMemory = async (page: Page): Promise<PageMemory> => {
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
const openUntilInteractive = async (page: Page, url: string, selector: string): Promise<number> => {
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
const readScriptBytes = (page: Page): Promise<number> =>
  page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      .filter((entry): entry is PerformanceResourceTiming => entry instanceof PerformanceResourceTiming)
      .filter(({ name }) => name.endsWith('.js'))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
  )

// What the console costs a browser: script, time to interactive, memory after an hour of live log.

const suite = useConsoleSuite({ prepare: ({ stack }) => seedNames(stack) })

/** An hour. At least so many minutes that the page drops lines. */
const MINUTES = proofSize(60, 20)
const LINES_PER_SECOND = 20
const LINES_PER_MINUTE = 60 * LINES_PER_SECOND

/** Far more than a busy machine needs for a minute of log. */
const STEP_TIMEOUT_MS = 60_000

const ROUNDS = proofSize(9, 1)
/** As on a slow machine. */
const SLOWDOWN = 4

/** Far more than the page needs for its last 20,000 lines, and less than for all lines of an hour. */
const MAX_GROWTH_MIB = 32
/** A full page may grow by this: caches of the browser and the engine. */
const MAX_GROWTH_WHEN_FULL_MIB = 4
/** The visible lines and the page around them. One node for each line of the log would be more. */
const MAX_DOM_NODES = 10_000

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

/** Lines as Terraform writes them, one in fifty of another level. */
const insertLines = async (id: string, from: number, count: number): Promise<void> => {
  await suite.stack.sql`
    insert into deployment_log_lines (deployment_id, seq, at, phase, level, message)
    select ${id}, seq, now(), 'apply', case seq % 50 when 0 then 'warn' when 1 then 'error' else 'info' end,
      'module.deployment.terraform_data.network[' || seq || ']: Still creating... [' || seq / 60 || 'm' || seq % 60 || 's elapsed]'
    from generate_series(${from}::int, ${from + count - 1}::int) seq`
}

describe.skipIf(skipsBrowser)('the page', () => {
  test('of names is interactive soon, and loads little script', async () => {
    const { browser, origin, stack } = suite
    const first = await openPage(browser, origin)
    await signIn(first.page, origin, stack.api.operatorToken)
    const storageState = await first.context.storageState()
    await first.context.close()
    const times = { cold: [] as number[], warm: [] as number[], slow: [] as number[] }
    let scriptBytes = 0
    for (let round = 0; round < ROUNDS; round += 1) {
      const context = await browser.newContext({ storageState })
      const page = await context.newPage()
      const open = () => openUntilInteractive(page, `${origin}/console/names`, 'tbody tr')
      times.cold.push(await open())
      scriptBytes = await readScriptBytes(page)
      times.warm.push(await open())
      const session = await context.newCDPSession(page)
      await session.send('Emulation.setCPUThrottlingRate', { rate: SLOWDOWN })
      times.slow.push(await open())
      await context.close()
    }
    expect(scriptBytes).toBeGreaterThan(0)
    expect(scriptBytes).toBeLessThanOrEqual(MAX_FIRST_PAGE_BYTES)
    const [cold, warm, slow] = [times.cold, times.warm, times.slow].map(values => median(values).toFixed(0))
    reportProof(
      `console, names: interactive after ${cold} ms, with a warm cache ${warm} ms, and on a CPU ${SLOWDOWN} times slower ${slow} ms (medians of ${ROUNDS}); ${(scriptBytes / 1_024).toFixed(1)} KiB of script on the wire`,
    )
  })

  test('of a deployment keeps a bounded part of its live log', { timeout: MINUTES * STEP_TIMEOUT_MS }, async () => {
    const { browser, origin, stack } = suite
    // Of another replica: this one reads its log from the database.
    const id = await seedDeployment(stack, { pool: 'pool.test', subdomain: 'log', status: 'provisioning' })
    const { page, context, faults } = await openPage(browser, origin)
    await signIn(page, origin, stack.api.operatorToken)
    await page.goto(`${origin}/console/deployments/${id}`)
    await page.getByText('The log has no lines yet.').waitFor()

    const start = await readMemory(page)
    const samples: { readonly lines: number; readonly memory: PageMemory }[] = []
    for (let minute = 1; minute <= MINUTES; minute += 1) {
      const lines = minute * LINES_PER_MINUTE
      await insertLines(id, lines - LINES_PER_MINUTE + 1, LINES_PER_MINUTE)
      await page
        .locator('.log .message')
        .filter({ hasText: `network[${lines}]` })
        .waitFor()
      samples.push({ lines, memory: await readMemory(page) })
    }
    expect(await page.getByText(/^20,000 of 20,000 lines/).count()).toBe(1)
    expect(await page.locator('.log .line').count()).toBeLessThan(200)

    const full = samples.find(({ lines }) => lines >= MAX_LINES)?.memory
    const middle = samples[Math.floor(samples.length / 2) - 1]?.memory
    const end = samples.at(-1)?.memory
    if (!full || !middle || !end) throw new Error('the log is too short')
    const toText = ({ heapMib, domNodes }: PageMemory) => `${heapMib.toFixed(1)} MiB, ${domNodes} nodes`
    reportProof(
      `console, ${MINUTES} minutes of a log with ${LINES_PER_SECOND} lines per second, replayed: start ${toText(start)}; with ${MAX_LINES} lines ${toText(full)}; middle ${toText(middle)}; end ${toText(end)}`,
    )
    expect(end.heapMib - start.heapMib).toBeLessThan(MAX_GROWTH_MIB)
    expect(end.heapMib - full.heapMib).toBeLessThan(MAX_GROWTH_WHEN_FULL_MIB)
    expect(Math.max(...samples.map(({ memory }) => memory.domNodes))).toBeLessThan(MAX_DOM_NODES)
    expect(faults).toEqual([])
    await context.close()
  })
})
