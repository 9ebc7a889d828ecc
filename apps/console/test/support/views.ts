import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

export interface View {
  readonly width: number
  readonly height: number
  readonly colorScheme: 'light' | 'dark'
}

export const DEFAULT_VIEW: View = { width: 1_280, height: 800, colorScheme: 'light' }

export const ALL_VIEWS: readonly View[] = [
  DEFAULT_VIEW,
  { ...DEFAULT_VIEW, colorScheme: 'dark' },
  { width: 320, height: 640, colorScheme: 'light' },
  { width: 320, height: 640, colorScheme: 'dark' },
  // A page of 1,280 pixels has 640 CSS pixels at 200 % zoom.
  { width: 640, height: 400, colorScheme: 'light' },
  { width: 1_000, height: 700, colorScheme: 'light' },
  { width: 2_560, height: 1_440, colorScheme: 'light' },
]

/** WCAG 1.4.10: the content of a page of this width needs no horizontal scrolling. */
const NARROW = { width: 320, height: 640 }

const screenshots = process.env.CONSOLE_SCREENSHOTS
/** The states that docs/console.md shows. */
const DOCUMENTED = ['overview', 'names', 'name-failing', 'name-release', 'zone', 'deployment', 'wizard', 'lease']

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const axeScript = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Finding {
  readonly id: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

/** The findings of axe, each with the first element that it is about. */
const findViolations = async (page: Page): Promise<readonly string[]> => {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(axeScript)
  const run = `axe.run(document, { runOnly: ${JSON.stringify(TAGS)} }).then(({ violations }) => violations)`
  const violations = (await page.evaluate(run)) as readonly Finding[]
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}\n${nodes[0]?.failureSummary}`)
}

/** How far the content of the page, of a panel or of a dialog reaches beyond it, in pixels. */
const findOverflow = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const elements = [document.documentElement, ...document.querySelectorAll('.panel, dialog')]
    return Math.max(...elements.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))
  })

/** A plot follows the width of its panel a frame later. */
const expectFit = (page: Page, message: string) => expect.poll(() => findOverflow(page), { message }).toBe(0)

/** Checks the page in its present state: WCAG 2.2 AA in each view, and no horizontal scrolling, also if it is narrow. */
export const checkViews = async (page: Page, state: string, views: readonly View[]): Promise<void> => {
  if (screenshots !== undefined && DOCUMENTED.includes(state)) {
    await mkdir(screenshots, { recursive: true })
    await writeFile(join(screenshots, `${state}.png`), await page.screenshot())
  }
  const before = page.viewportSize() ?? DEFAULT_VIEW
  for (const { width, height, colorScheme } of views) {
    const what = `${state}, ${colorScheme}, ${width} pixels`
    await page.setViewportSize({ width, height })
    await page.emulateMedia({ colorScheme })
    await expectFit(page, `${what}: pixels of overflow`)
    expect(await findViolations(page), what).toEqual([])
  }
  await page.setViewportSize(NARROW)
  await expectFit(page, `${state}, narrow: pixels of overflow`)
  await page.emulateMedia({ colorScheme: DEFAULT_VIEW.colorScheme })
  await page.setViewportSize(before)
}
