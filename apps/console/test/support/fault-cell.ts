import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import type { FaultRead } from './fault-reads.ts'
import type { FaultStack } from './fault-stack.ts'
import type { FaultTask } from './fault-tasks.ts'

type Outcome = 'done' | 'error' | 'signed-out'

const tokenField = (page: Page): Locator => page.getByLabel('Operator token')

/** A task under a fault, in a page of its own. */
export class Cell {
  readonly name: string
  readonly stack: FaultStack
  readonly task: FaultTask
  readonly page: Page
  /** What the page showed, in order. */
  readonly shown: string[] = []
  readonly #subject: string
  #path = ''
  #isSent: Promise<unknown> = Promise.resolve()
  #outcome: Promise<Outcome> = Promise.resolve('error')

  constructor(stack: FaultStack, task: FaultTask, subject: string, page: Page) {
    this.name = task.name
    this.stack = stack
    this.task = task
    this.page = page
    this.#subject = subject
  }

  /** Where the task is confirmed. */
  get #form(): Locator {
    return this.task.isForm ? this.page.locator('.wizard') : this.page.getByRole('dialog')
  }

  get #button(): Locator {
    return this.#form.getByRole('button', { name: this.task.confirm, exact: true })
  }

  /** Shows the confirmation of a new subject. */
  async open(): Promise<void> {
    this.#path = await this.task.prepare(this.stack, this.#subject)
    await this.page.goto(`${this.stack.origin}/console${this.#path}`)
    await this.task.open(this.page, this.#subject)
  }

  async press(): Promise<void> {
    // The steps of a fault decide which of the two they await.
    this.#isSent = this.page.waitForRequest(request => request.method() !== 'GET')
    this.#isSent.catch(() => undefined)
    await this.#button.click()
    this.#outcome = this.#watchOutcome()
    this.#outcome.catch(() => undefined)
  }

  async untilSent(): Promise<void> {
    await this.#isSent
  }

  /** While its request has no response, the task cannot be started a second time, and its page does not forget it. */
  async expectWorking(): Promise<void> {
    const working = this.#form.getByRole('button', { name: /^(?:Working|Creating) …$/ })
    await working.waitFor()
    expect(await working.isDisabled()).toBe(true)
    for (const key of ['Enter', 'Escape', 'Escape']) await this.page.keyboard.press(key)
    expect(await working.isVisible()).toBe(true)
  }

  async #watchOutcome(): Promise<Outcome> {
    const done = this.page.locator('.toasts').getByText(this.task.done)
    const error = this.#form.getByRole('alert')
    await done.or(tokenField(this.page)).or(error).first().waitFor()
    if (await tokenField(this.page).isVisible()) return 'signed-out'
    if (!(await error.first().isVisible())) {
      this.shown.push('done')
      return 'done'
    }
    const hint = this.#form.getByText('It may have been done already')
    this.shown.push([...(await error.allInnerTexts()), ...(await hint.allInnerTexts())].join(' '))
    return 'error'
  }

  async expectOutcome(expected: Outcome): Promise<void> {
    expect(await this.#outcome).toBe(expected)
  }

  /** The page notices that the session has ended, also without a request of the operator. */
  async expectSignedOut(): Promise<void> {
    await tokenField(this.page).waitFor()
    await this.page.getByText('The session has ended').waitFor()
  }

  async hasEffect(): Promise<boolean> {
    return (await this.task.countEffects(this.stack, this.#subject)) > 0
  }

  async expectEffects(...expected: readonly number[]): Promise<void> {
    expect(expected, 'how often it took effect').toContain(await this.task.countEffects(this.stack, this.#subject))
  }

  /** After a sign-in: a form has its input, and the confirmation of a page is shown again. */
  async confirmAgain(): Promise<void> {
    if (this.task.isForm) await this.#button.waitFor()
    else await this.task.open(this.page, this.#subject)
    await this.press()
    await this.expectOutcome('done')
    await this.check()
  }

  /** Confirms again if the page has an error, and checks the effect. */
  async finish(): Promise<void> {
    if ((await this.#outcome) === 'error') {
      expect(this.shown.at(-1)).toMatch(/did not respond|does not respond|look at the current state/)
      const wasDone = await this.hasEffect()
      await this.press()
      // It can say that there is nothing left to do.
      if (!wasDone) await this.expectOutcome('done')
      await this.#outcome
    }
    await this.check()
  }

  /** The effect is there once, completely, and on the page. */
  async check(): Promise<void> {
    await this.expectEffects(1)
    await this.task.expectComplete(this.stack, this.#subject)
    await this.page.goto(`${this.stack.origin}/console${this.#path}`)
    await this.task.result(this.page, this.#subject).first().waitFor()
  }
}

/** A read under a fault, in a page of its own. */
export class ReadCell {
  readonly name: string
  readonly read: FaultRead
  readonly page: Page
  readonly #stack: FaultStack
  readonly #subject: string
  readonly #path: string

  constructor(stack: FaultStack, read: FaultRead, subject: string, page: Page, path: string) {
    this.name = read.name
    this.read = read
    this.page = page
    this.#stack = stack
    this.#subject = subject
    this.#path = path
  }

  async open(): Promise<void> {
    await this.page.goto(`${this.#stack.origin}/console${this.#path}`)
    await this.read.open?.(this.page, this.#stack)
    await this.read.kept(this.page).first().waitFor()
  }

  async act(): Promise<void> {
    await this.read.act(this.page, this.#subject, this.#stack)
  }

  /** The error is there, and so is what the page had before. */
  async expectError(text: RegExp): Promise<void> {
    await this.page.getByRole('alert').filter({ hasText: text }).first().waitFor()
    expect(await this.read.kept(this.page).first().isVisible()).toBe(true)
  }

  async expectSignedOut(): Promise<void> {
    await tokenField(this.page).waitFor()
    const reason = this.read.isSignIn ? 'This is not an operator token.' : 'The session has ended'
    await this.page.getByText(reason).waitFor()
  }

  /** The page shows what it has to, exactly once, without an error and without a reload. */
  async expectShown(): Promise<void> {
    const shown = this.read.shown(this.page, this.#subject)
    await shown.first().waitFor()
    await this.page.getByRole('alert').first().waitFor({ state: 'detached' })
    expect(await shown.count()).toBe(1)
  }

  async recover(): Promise<void> {
    if (this.read.isRepeatedByHand) await this.act()
    await this.expectShown()
  }
}
