import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { launchChromium, missingChromium } from './browser.ts'
import { type ConsoleStack, startConsoleStack } from './stack.ts'

export const skipsBrowser = shouldSkip(missingChromium)

export interface BrowserSuite {
  readonly stack: ConsoleStack
  readonly browser: Browser
  /** Where the console is served, without a path. */
  readonly origin: string
}

/** Starts one stack and one browser for the tests of a file, and stops both afterwards. */
export const useBrowserSuite = (
  prepare: (stack: ConsoleStack) => Promise<void>,
  env: Readonly<Record<string, string>> = {},
): (() => BrowserSuite) => {
  const cleanup = new AsyncDisposableStack()
  let suite: BrowserSuite | undefined
  beforeAll(async () => {
    if (skipsBrowser) return
    const stack = cleanup.use(await startConsoleStack(env))
    const browser = await launchChromium()
    cleanup.defer(() => browser.close())
    await prepare(stack)
    suite = { stack, browser, origin: stack.api.operatorUrl }
  })
  afterAll(() => cleanup.disposeAsync())
  return () => {
    if (suite === undefined) throw new Error('the stack has not started')
    return suite
  }
}
