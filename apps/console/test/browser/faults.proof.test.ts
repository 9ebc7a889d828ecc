import { until } from '@pool/test-kit/poll.ts'
import { proofSize } from '@pool/test-kit/proof-size.ts'
import type { Locator } from 'playwright-core'
import postgres from 'postgres'
import { describe, expect, test } from 'vitest'
import { createReady, type FaultTask, faultTasks, pools, untilStatus } from '../support/fault-tasks.ts'
import { findKept } from '../support/secrets.ts'
import { appendLogLines, seedDeployment } from '../support/seed.ts'
import { missingTerraform, skipsBrowser, storageKeys, useConsoleSuite } from '../support/suite.ts'

// What an operator changes and reads, while something fails. Afterwards a change has taken effect once and completely, or not at
// all; the page says what to do; and to confirm again is safe.

// The page comes from another host over plain HTTP, so that it has no secure context.
const suite = useConsoleSuite({ pools, hostname: 'console.test', prepare: async () => undefined })

const CHANGES = '**/api/v1/**'
const tokenField = () => suite.page.getByLabel('Operator token')
/** Ends the session, and lets the page notice it without a request of the operator: its stream of changes begins again. */
const endSession = async (): Promise<void> => {
  await suite.stack.sql`delete from operator_sessions`
  await suite.page.evaluate(() => {
    for (const value of ['hidden', 'visible']) {
      Object.defineProperty(document, 'visibilityState', { value, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    }
  })
  await tokenField().waitFor()
  await suite.seeText('The session has ended')
}

/** Ends every connection of the API to its database, and lets none begin, until the returned function is called. */
const removeDatabase = async (): Promise<() => Promise<void>> => {
  const { api, client } = suite.stack
  const url = new URL(api.databaseUrl)
  const name = url.pathname.slice(1)
  // A session cannot close its own database.
  const other = postgres(Object.assign(url, { pathname: '/template1' }).href, { max: 1 })
  const allow = (isAllowed: boolean) => other.unsafe(`alter database "${name}" with allow_connections ${isAllowed}`)
  await allow(false)
  await other`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`
  return async () => {
    await allow(true)
    await other.end({ timeout: 1 })
    await until('the API reaches the database', () =>
      client.getHealth().then(
        ({ status }) => status === 'ok',
        () => false,
      ),
    )
  }
}

/** Loses every response to a change. Resolves with a function that ends this. */
const dropResponses = async (): Promise<() => Promise<void>> => {
  await suite.page.route(CHANGES, async route => {
    const request = route.request()
    if (request.method() === 'GET') return route.fallback()
    // Only the browser resolves the host of the console.
    const { host, pathname, search } = new URL(request.url())
    const headers = { ...(await request.allHeaders()), host }
    await route.fetch({ url: `${suite.stack.api.operatorUrl}${pathname}${search}`, headers })
    await route.abort('connectionreset')
  })
  return () => suite.page.unroute(CHANGES)
}

/** A change that an operator confirms while something fails. */
class Attempt {
  readonly task: FaultTask
  readonly #subject: string

  constructor(task: FaultTask, subject: string) {
    this.task = task
    this.#subject = subject
  }

  get form(): Locator {
    return this.task.isForm ? suite.page.locator('.wizard') : suite.page.getByRole('dialog')
  }

  async start(): Promise<void> {
    const path = await this.task.prepare(suite.stack, this.#subject)
    await suite.page.evaluate(() => sessionStorage.clear())
    await suite.open(path)
    await this.open()
  }

  open(): Promise<void> {
    return this.task.open(suite, this.#subject)
  }

  async confirm(): Promise<void> {
    await this.form.getByRole('button', { name: this.task.confirm, exact: true }).click()
  }

  async expectEffects(...expected: readonly number[]): Promise<void> {
    expect(expected, 'how often it took effect').toContain(await this.task.countEffects(suite.stack, this.#subject))
  }

  async untilEffect(): Promise<void> {
    await until('it has taken effect', async () => (await this.task.countEffects(suite.stack, this.#subject)) > 0)
  }

  /** Whether the page says that it is done, rather than what went wrong. */
  async isDone(): Promise<boolean> {
    const done = suite.page.locator('.toasts').getByText(this.task.done)
    await done.or(this.form.getByRole('alert')).first().waitFor()
    return await done.first().isVisible()
  }

  async expectError(): Promise<void> {
    expect(await this.isDone()).toBe(false)
    const alert = this.form.getByRole('alert')
    expect(await alert.first().textContent()).toMatch(/did not respond|does not respond|look at the current state/)
  }

  /** Confirms again if the page has an error. It can say that there is nothing left to do. */
  async finish(): Promise<void> {
    if (!(await this.isDone())) {
      await this.confirm()
      await this.form.getByRole('button', { name: /^(?:Working|Creating) …$/ }).waitFor({ state: 'detached' })
    }
    await this.check()
  }

  /** The effect is there once, and completely. */
  async check(): Promise<void> {
    await this.expectEffects(1)
    await this.task.expectComplete(suite.stack, this.#subject)
  }
}

const faults: Readonly<Record<string, (attempt: Attempt) => Promise<void>>> = {
  'the service is away before the request': async attempt => {
    await suite.page.route(CHANGES, route => route.abort('connectionrefused'))
    await attempt.confirm()
    await attempt.expectError()
    await attempt.expectEffects(0)
    await suite.page.unroute(CHANGES)
    await attempt.finish()
  },
  'the API is killed after the write': async attempt => {
    const fault = await suite.stack.api.killAfterWrite()
    await attempt.confirm()
    await fault.occurred()
    await attempt.finish()
  },
  'the response is lost after the write': async attempt => {
    const end = await dropResponses()
    await attempt.confirm()
    await attempt.untilEffect()
    await attempt.expectError()
    await end()
    await attempt.finish()
  },
  'the database is away': async attempt => {
    const restore = await removeDatabase()
    await attempt.confirm()
    const isDone = await attempt.isDone()
    await restore()
    // The database takes no part in the release of a lease but for the session.
    await attempt.expectEffects(isDone ? 1 : 0)
    await attempt.finish()
  },
  'the network is silent and then slow': async attempt => {
    const { api } = suite.stack
    const silence = await api.partition()
    await attempt.confirm()
    const working = attempt.form.getByRole('button', { name: /^(?:Working|Creating) …$/ })
    await working.waitFor()
    for (const key of ['Enter', 'Escape', 'Escape']) await suite.page.keyboard.press(key)
    expect(await working.isVisible()).toBe(true)
    const slowness = await api.delay(100)
    await silence.cancel()
    await attempt.finish()
    await slowness.cancel()
  },
  'the session ends before the request': async attempt => {
    const address = suite.page.url()
    await endSession()
    await attempt.expectEffects(0)
    await suite.signIn()
    await suite.page.goto(address)
    if (!attempt.task.isForm) await attempt.open()
    await attempt.confirm()
    await attempt.finish()
  },
  'the session ends and the response is lost after the write': async attempt => {
    const end = await dropResponses()
    await attempt.confirm()
    await attempt.untilEffect()
    await endSession()
    await end()
    await suite.signIn()
    await attempt.check()
  },
}

/** All tasks at the full size; fewer of them for each fault below it. */
const chooseTasks = (fault: number): readonly FaultTask[] => {
  const size = proofSize(faultTasks.length, 3)
  return faultTasks.filter((_, position) => (position + fault * size) % faultTasks.length < size)
}

describe.skipIf(skipsBrowser).each(Object.keys(faults).map((name, index) => ({ name, index })))('$name', fault => {
  test.each(chooseTasks(fault.index))('$name', async task => {
    const attempt = new Attempt(task, `f${fault.index}`)
    await attempt.start()
    await faults[fault.name]?.(attempt)
    // A request that fails is a fault of this test and not of the page.
    suite.visitor.faults.splice(0)
  })
})

describe.skipIf(skipsBrowser)('a read', () => {
  test('of a live log continues where it was when the API was killed', async () => {
    const { page, stack } = suite
    const id = await seedDeployment(stack, { pool: 'runs.test', subdomain: 'log', status: 'provisioning' })
    await appendLogLines(stack, id, ['first line'])
    await suite.open(`/deployments/${id}`)
    await suite.seeText('first line')
    await stack.api.kill()
    await appendLogLines(stack, id, ['second line'])
    await suite.seeText('second line')
    const shown = await page.locator('.log .message').allInnerTexts()
    expect(shown).toEqual(['first line', 'second line'])
    suite.visitor.faults.splice(0)
  })
})

describe.skipIf(skipsBrowser)('the keys of the object storage', () => {
  test('are gone after a destroy that failed and a session that ended', async () => {
    const { page, stack } = suite
    const seed = { pool: 'runs.test', subdomain: 'keys', status: 'ready', bucket: 'bucket-of-keys' } as const
    const id = await seedDeployment(stack, seed)
    await suite.open(`/deployments/${id}`)
    await suite.press('Destroy')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Type keys.runs.test to confirm').fill('keys.runs.test')
    const fillKeys = async () => {
      await dialog.getByLabel('Access key').fill(storageKeys.accessKey)
      await dialog.getByLabel('Secret key').fill(storageKeys.secretKey)
    }
    await page.route(CHANGES, route => route.abort('connectionrefused'))
    await fillKeys()
    await dialog.getByRole('button', { name: 'Destroy' }).click()
    await dialog.getByRole('alert').waitFor()
    expect(await dialog.getByLabel('Secret key').inputValue()).toBe('')
    await fillKeys()
    await page.unroute(CHANGES)
    await endSession()
    const secrets = [storageKeys.accessKey, storageKeys.secretKey, stack.api.operatorToken]
    expect(await findKept(page, secrets)).toEqual([])
    expect((await stack.sql`select status from deployments where id = ${id}`)[0]?.status).toBe('ready')
    await suite.signIn()
  })
})

describe.skipIf(skipsBrowser || missingTerraform !== undefined)('a request that the browser repeats', () => {
  test('after the run, to apply or to destroy, starts no other run', async () => {
    const { page, stack } = suite
    const id = await createReady(stack, 'late')
    for (const [label, status, event, changes] of [
      // That of the creation.
      ['Apply', 'ready', 'apply-requested', 1],
      ['Destroy', 'destroyed', 'destroy-requested', 2],
    ] as const) {
      const countRuns = async () =>
        (await stack.sql`select from deployment_history where deployment_id = ${id} and event = ${event}`).length
      await suite.open(`/deployments/${id}`)
      await suite.press(label)
      const sent = page.waitForRequest(request => request.method() === 'POST')
      const dialog = page.getByRole('dialog')
      if (label === 'Destroy') await dialog.getByLabel('Type late.runs.test to confirm').fill('late.runs.test')
      await dialog.getByRole('button', { name: label }).click()
      const request = await sent
      await until('the run has begun', async () => (await countRuns()) === 1)
      await untilStatus(stack, 'late', status)
      const repeated = await page.evaluate(
        ([url = '', body = '', key = '']) =>
          fetch(url, { method: 'POST', body, headers: { 'Idempotency-Key': key } }).then(r => r.status),
        [request.url(), request.postData() ?? '', request.headers()['idempotency-key'] ?? ''],
      )
      expect([repeated, await countRuns()]).toEqual([202, 1])
      const effective = await stack.sql`
        select from deployment_log_lines where deployment_id = ${id} and message ~ 'complete! Resources: .*[1-9]'`
      expect(effective.length, 'runs that changed the infrastructure').toBe(changes)
    }
  })
})

describe.skipIf(skipsBrowser)('a browser with more tabs than connections', () => {
  test('loads each of them', async () => {
    for (let tab = 0; tab < 8; tab += 1) {
      const page = await suite.visitor.context.newPage()
      await page.goto(`${suite.origin}/console/zones`)
      await page.getByRole('link', { name: 'pool.test', exact: true }).waitFor()
      await page.getByText('live', { exact: true }).waitFor()
      // What the browser does with a tab when another one is shown; without a screen, all of them are visible.
      await page.evaluate(() => {
        Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))
      })
    }
  })
})
