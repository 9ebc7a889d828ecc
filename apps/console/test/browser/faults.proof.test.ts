import { randomUUID } from 'node:crypto'
import { until } from '@pool/test-kit/poll.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import type { Browser, BrowserContext, Cookie, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launchChromium, openPage, signIn, type Visitor } from '../support/browser.ts'
import { Cell, ReadCell } from '../support/fault-cell.ts'
import { type FaultRead, faultReads } from '../support/fault-reads.ts'
import { CONSOLE_HOST, type FaultStack, startFaultStack } from '../support/fault-stack.ts'
import { type FaultTask, faultTasks, pools, prepareReady } from '../support/fault-tasks.ts'
import { findKept } from '../support/secrets.ts'
import { seedDeployment } from '../support/seed-deployment.ts'
import { missingTerraform, skipsBrowser } from '../support/suite.ts'

// Everything that an operator does, while something fails. Each task and each read has a page of its own, and a fault is
// injected into all of them at the same time: when the confirmation is shown, or when its request has been sent. Afterwards a
// change has taken effect once and completely, or not at all; the page says what to do; and to confirm again is safe.

/** Many pages work at the same time, on a machine that may be busy. */
const TIMEOUT_MS = 60_000
const DELAY_MS = 100

let stack: FaultStack
let browser: Browser
const visitors = new Map<string, Visitor>()
const cleanup = new AsyncDisposableStack()

beforeAll(async () => {
  if (skipsBrowser) return
  stack = cleanup.use(await startFaultStack(pools))
  browser = await launchChromium(CONSOLE_HOST)
  cleanup.defer(() => browser.close())
})
afterAll(() => cleanup.disposeAsync())

const openVisitor = async (name: string): Promise<Visitor> => {
  const visitor = visitors.get(name) ?? (await openPage(browser, stack.origin))
  visitor.page.setDefaultTimeout(TIMEOUT_MS)
  visitors.set(name, visitor)
  return visitor
}

/** Signs in with the current token. One session serves all pages, as in a browser with many tabs. */
const startSession = async (): Promise<readonly Cookie[]> => {
  const { context, page } = await openPage(browser, stack.origin)
  page.setDefaultTimeout(TIMEOUT_MS)
  await signIn(page, stack.origin, stack.token())
  const cookies = await context.cookies()
  await context.close()
  return cookies
}

const useSession = async (contexts: readonly BrowserContext[]): Promise<void> => {
  const cookies = await startSession()
  await Promise.all(contexts.map(context => context.addCookies([...cookies])))
}

/** Runs the steps of every cell of a fault. A cell that has failed takes no further part. */
class Run<C extends { readonly name: string; readonly page: Page }> {
  readonly failures = new Map<string, unknown>()
  readonly #cells: readonly C[]

  constructor(cells: readonly C[]) {
    this.#cells = cells
  }

  async each(step: (cell: C) => Promise<unknown>): Promise<void> {
    const run = async (cell: C) => {
      if (this.failures.has(cell.name)) return
      await step(cell).catch(error => this.failures.set(cell.name, error))
    }
    await Promise.all(this.#cells.map(run))
  }

  async signInAgain(): Promise<void> {
    await useSession(this.#cells.map(({ page }) => page.context()))
    await this.each(cell => cell.page.reload())
  }

  async #isApiReady(): Promise<boolean> {
    return stack.client.getHealth().then(
      ({ status }) => status === 'ok',
      () => false,
    )
  }

  async reconnectDatabase(): Promise<void> {
    stack.databaseLink.refuse(false)
    await until('the API reaches the database', () => this.#isApiReady())
  }
}

interface Fault<C extends { readonly name: string; readonly page: Page }, Row> {
  readonly name: string
  readonly applies?: (row: Row) => boolean
  readonly run: (run: Run<C>) => Promise<void>
}

const press = (cell: Cell) => cell.press()
const finish = (cell: Cell) => cell.finish()
const expectError = (cell: Cell) => cell.expectOutcome('error')
const expectNoEffect = (cell: Cell) => cell.expectEffects(0)
const untilEffect = (cell: Cell) => until(`${cell.name} has taken effect`, () => cell.hasEffect())

const faults: readonly Fault<Cell, FaultTask>[] = [
  {
    name: 'the API is killed before the request',
    async run(run) {
      await stack.kill()
      await run.each(press)
      await run.each(expectError)
      await run.each(expectNoEffect)
      await stack.start()
      await run.each(finish)
    },
  },
  {
    name: 'the API is killed in the middle of the write',
    async run(run) {
      const release = await stack.holdWrites()
      stack.witnessLink.dropResponses(true)
      await run.each(press)
      await run.each(cell => cell.untilSent())
      await stack.untilWriteWaits()
      await stack.kill()
      await release()
      await run.each(expectError)
      await stack.untilLostStatementsEnd()
      stack.witnessLink.dropResponses(false)
      await stack.start()
      await run.each(cell => cell.expectEffects(0, 1))
      await run.each(finish)
    },
  },
  {
    name: 'the response is lost after the write',
    async run(run) {
      stack.network.dropResponses(true)
      await run.each(press)
      await run.each(untilEffect)
      stack.network.resetAll()
      stack.network.dropResponses(false)
      await run.each(finish)
    },
  },
  {
    name: 'the database is away before the request',
    async run(run) {
      stack.databaseLink.refuse(true)
      await run.each(press)
      await run.each(expectError)
      await run.each(expectNoEffect)
      await run.reconnectDatabase()
      await run.each(finish)
    },
  },
  {
    name: 'the database is away in the middle of the write',
    applies: ({ isOfWitness }) => !isOfWitness,
    async run(run) {
      const release = await stack.holdWrites()
      await run.each(press)
      await run.each(cell => cell.untilSent())
      await stack.untilWriteWaits()
      stack.databaseLink.refuse(true)
      await release()
      await run.each(expectError)
      await stack.untilLostStatementsEnd()
      await run.each(cell => cell.expectEffects(0, 1))
      await run.reconnectDatabase()
      await run.each(finish)
    },
  },
  {
    name: 'the network is silent and then slow',
    async run(run) {
      stack.network.freeze()
      await run.each(press)
      await run.each(cell => cell.expectWorking())
      stack.network.thaw()
      stack.network.delay(DELAY_MS)
      await run.each(cell => cell.expectOutcome('done'))
      stack.network.delay(0)
      await run.each(finish)
    },
  },
  {
    name: 'the token is removed before the request',
    async run(run) {
      // Without a click: a page leaves as soon as its stream of changes is rejected, which no click can be sure to precede.
      await stack.replaceToken()
      await run.each(cell => cell.expectSignedOut())
      await run.each(expectNoEffect)
      await run.signInAgain()
      await run.each(cell => cell.confirmAgain())
    },
  },
  {
    name: 'the token is removed and the response is lost after the write',
    async run(run) {
      stack.network.dropResponses(true)
      await run.each(press)
      await run.each(untilEffect)
      stack.network.refuse(true)
      stack.network.dropResponses(false)
      await stack.replaceToken()
      stack.network.refuse(false)
      await run.each(cell => cell.expectSignedOut())
      await run.signInAgain()
      await run.each(cell => cell.check())
    },
  },
]

/** All tasks at the full size. At half of it, every other fault has the other half of the tasks. */
const chooseTasks = (fault: number): readonly FaultTask[] => {
  const size = proofSize(faultTasks.length, 3)
  return faultTasks.filter((_, position) => (position + fault * size) % faultTasks.length < size)
}

describe.skipIf(skipsBrowser).each(faults.map((fault, index) => ({ ...fault, index })))('$name', fault => {
  const tasks = chooseTasks(fault.index).filter(task => fault.applies?.(task) ?? true)
  let run: Run<Cell>

  beforeAll(async () => {
    const cells = await Promise.all(
      tasks.map(async task => new Cell(stack, task, `f${fault.index}`, (await openVisitor(task.name)).page)),
    )
    await useSession(cells.map(({ page }) => page.context()))
    run = new Run(cells)
    await run.each(cell => cell.open())
    await fault.run(run)
    const repeated = cells.filter(({ shown }) => shown[0] !== 'done')
    const ends = repeated.filter(({ shown }) => shown.at(-1) === 'done')
    reportProof(
      `${fault.name}: ${cells.length} changes, ${repeated.length} with an error first, ${ends.length} of them done when confirmed again`,
    )
  })

  test.each(tasks)('$name', ({ name }) => {
    if (run.failures.has(name)) throw run.failures.get(name)
  })
})

const act = (cell: ReadCell) => cell.act()

const readFaults: readonly Fault<ReadCell, FaultRead>[] = [
  {
    name: 'a read, when the API is killed',
    async run(run) {
      await stack.kill()
      await run.each(act)
      await run.each(cell => cell.expectError(/The service did not respond/))
      await stack.start()
      await run.each(cell => cell.recover())
    },
  },
  {
    name: 'a read, when the database is away',
    async run(run) {
      stack.databaseLink.refuse(true)
      await run.each(act)
      await run.each(cell => cell.expectError(/The database of the service does not respond/))
      await run.reconnectDatabase()
      await run.each(cell => cell.recover())
    },
  },
  {
    name: 'a read, when the network is silent and then slow',
    async run(run) {
      stack.network.freeze()
      await run.each(act)
      await run.each(async ({ read, page }) => expect(await read.kept(page).first().isVisible()).toBe(true))
      stack.network.thaw()
      stack.network.delay(DELAY_MS)
      await run.each(cell => cell.expectShown())
      stack.network.delay(0)
    },
  },
  {
    name: 'a read, when the token is removed',
    async run(run) {
      await stack.replaceToken()
      await run.each(async cell => cell.read.isSignIn && cell.act())
      await run.each(cell => cell.expectSignedOut())
      await run.signInAgain()
      await run.each(async cell => {
        await cell.page.getByRole('heading', { level: 1 }).waitFor()
        expect(await cell.page.getByLabel('Operator token').count()).toBe(0)
      })
    },
  },
]

describe.skipIf(skipsBrowser).each(readFaults.map((fault, index) => ({ ...fault, index })))('$name', fault => {
  let run: Run<ReadCell>

  beforeAll(async () => {
    const subject = `r${fault.index}`
    const cells = await Promise.all(
      faultReads.map(async read => {
        const { page } = await openVisitor(read.name)
        return new ReadCell(stack, read, subject, page, await read.prepare(stack, subject))
      }),
    )
    await useSession(cells.map(({ page }) => page.context()))
    run = new Run(cells)
    await run.each(cell => cell.open())
    await fault.run(run)
  })

  test.each(faultReads)('$name', ({ name }) => {
    if (run.failures.has(name)) throw run.failures.get(name)
  })
})

describe.skipIf(skipsBrowser)('the keys of the object storage', () => {
  const keys = { accessKey: 'MARKACCESSKEY0123456', secretKey: 'mark-secret-key-0123456789abcdefghijklmnop' }
  const bucket = 'bucket-of-keys'

  test('are gone after a destroy that failed and a session that ended', async () => {
    const { id } = await seedDeployment(stack, { pool: pools[1], subdomain: 'keys', status: 'ready', bucket })
    const { page, context } = await openVisitor('keys')
    await useSession([context])
    await page.goto(`${stack.origin}/console/deployments/${id}`)
    await page.getByRole('button', { name: 'Destroy' }).click()
    const dialog = page.getByRole('dialog')
    const fillKeys = async () => {
      await dialog.getByLabel('Access key').fill(keys.accessKey)
      await dialog.getByLabel('Secret key').fill(keys.secretKey)
    }
    await stack.kill()
    await fillKeys()
    await dialog.getByRole('button', { name: 'Destroy' }).click()
    await dialog.getByRole('alert').waitFor()
    expect(await dialog.getByLabel('Secret key').inputValue()).toBe('')
    await fillKeys()
    await stack.replaceToken()
    await page.getByLabel('Operator token').waitFor()
    expect(await findKept(page, [keys.accessKey, keys.secretKey, stack.token()])).toEqual([])
    expect((await stack.sql`select status from deployments where id = ${id}`)[0]?.status).toBe('ready')
  })
})

// Chromium sends a request again, also a POST or a DELETE, if a connection that it has used before ends without a response. If
// it has no free one, it opens one and reports the failure: then a test is repeated.
describe.skipIf(skipsBrowser)('a request that the browser repeats after the end of the run', () => {
  /** Loses the response, and lets the browser send the request again as soon as `isOver`. */
  const repeatAfter = async (isOver: () => Promise<unknown>): Promise<void> => {
    try {
      await isOver()
    } finally {
      stack.network.dropResponses(false)
      stack.network.resetAll()
    }
  }
  const openDeployment = async (id: string): Promise<Page> => {
    const { page, context } = await openVisitor('repeats')
    await useSession([context])
    await page.goto(`${stack.origin}/console/deployments/${id}`)
    await page.getByRole('heading', { name: 'History' }).waitFor()
    return page
  }
  /** Leaves a free connection that was used, and loses the responses from now on. */
  const dropResponses = async (page: Page, id: string): Promise<void> => {
    await page.evaluate(async path => (await fetch(path)).text(), `/api/v1/deployments/${id}`)
    stack.network.dropResponses(true)
  }
  const uniqueName = (name: string): string => `${name}-${randomUUID().slice(0, 8)}`
  const readDeployment = async (id: string) =>
    (await stack.sql`select status, cancelled_at is not null as "isCancelled" from deployments where id = ${id}`)[0]
  /** Waits for the cancellation, and ends the run as its process would. */
  const endRun = async (id: string): Promise<void> => {
    await until('the run is cancelled', async () => (await readDeployment(id))?.isCancelled)
    await stack.sql`
      update deployments set status = 'failed', finished_at = now(), run_expires_at = null, error = 'Cancelled.' where id = ${id}`
  }

  test('a cancellation deletes nothing', { retry: 2 }, async () => {
    const subdomain = uniqueName('late-cancel')
    const { id } = await seedDeployment(stack, { pool: pools[1], subdomain, status: 'provisioning' })
    const page = await openDeployment(id)
    await page.getByRole('button', { name: 'Cancel the run' }).click()
    await dropResponses(page, id)
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the run' }).click()
    await repeatAfter(() => endRun(id))
    // The first response is lost, so this is the second one.
    await page.locator('.toasts').getByText('is being cancelled').waitFor()
    expect(await readDeployment(id)).toEqual({ status: 'failed', isCancelled: true })
  })

  test.skipIf(missingTerraform !== undefined)(
    'an apply and a destroy have nothing left to do',
    { retry: 2 },
    async () => {
      const subdomain = uniqueName('late-runs')
      const id = (await prepareReady(stack, subdomain)).split('/').at(-1) ?? ''
      const page = await openDeployment(id)
      for (const [label, status, event, changes] of [
        // That of the creation.
        ['Apply', 'ready', 'apply-requested', 1],
        ['Destroy', 'destroyed', 'destroy-requested', 2],
      ] as const) {
        const countRuns = async () =>
          (await stack.sql`select from deployment_history where deployment_id = ${id} and event = ${event}`).length
        const isOver = (runs: number) =>
          until(
            `run ${runs} is over`,
            async () => (await countRuns()) === runs && (await readDeployment(id))?.status === status,
          )
        await page.getByRole('button', { name: label }).click()
        await dropResponses(page, id)
        await page.getByRole('dialog').getByRole('button', { name: label }).click()
        await repeatAfter(() => isOver(1))
        await isOver(2)
        const effective = await stack.sql`
        select from deployment_log_lines where deployment_id = ${id} and message ~ 'complete! Resources: .*[1-9]'`
        expect(effective.length, 'runs that changed the infrastructure').toBe(changes)
        await page.reload()
        await page.getByRole('heading', { name: 'History' }).waitFor()
      }
      const released = await stack.sql`
      select from allocation_history where subdomain = ${subdomain} and event = 'released'`
      expect(released.length).toBe(1)
    },
  )
})

describe.skipIf(skipsBrowser)('a browser with more tabs than connections', () => {
  const TABS = 8

  test('loads each of them', async () => {
    const { context } = await openVisitor('tabs')
    await useSession([context])
    for (let tab = 0; tab < TABS; tab += 1) {
      const page = await context.newPage()
      await page.goto(`${stack.origin}/console/zones`)
      await page.getByRole('link', { name: pools[0] }).waitFor()
      await page.getByText('live', { exact: true }).waitFor()
      // What the browser does with a tab when another one is shown; without a screen, all of them are visible.
      await page.evaluate(() => {
        Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))
      })
    }
  })
})
