import { isDatabaseUnavailable, within } from './connect.ts'

export interface TogetherOptions<Request, Answer> {
  /** Answers all of them, in their order, by one statement: all or none. */
  readonly ask: (requests: readonly Request[]) => Promise<readonly Answer[]>
  /** Statements under way at a time. */
  readonly lanes: number
  /** Requests that share a statement, at most. */
  readonly most: number
  /** Milliseconds from the call to `DatabaseTimeout`. One that nobody waits for any more is not sent. */
  readonly timeoutMs: number
}

interface Waiter<Request, Answer> {
  readonly request: Request
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/**
 * Group commit: a call that finds a free lane is sent at once; those that come while all lanes are taken share the next
 * statement. So the busier the process, the fewer statements and fsyncs a request costs, and nobody waits for company.
 */
export const together = <Request, Answer>({ ask, lanes, most, timeoutMs }: TogetherOptions<Request, Answer>) => {
  const waiting = new Set<Waiter<Request, Answer>>()
  let taken = 0

  const answer = async (group: readonly Waiter<Request, Answer>[]): Promise<void> => {
    try {
      const answers = await ask(group.map(({ request }) => request))
      if (answers.length !== group.length) throw new Error(`${group.length} requests, ${answers.length} answers`)
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] as Answer)
    } catch (error) {
      // What the database finds wrong with one of them is not the others' fault: nothing was done, so each is asked alone.
      if (group.length > 1 && !isDatabaseUnavailable(error)) for (const one of group) await answer([one])
      else for (const { reject } of group) reject(error)
    }
  }

  const send = (): void => {
    while (taken < lanes && waiting.size > 0) {
      const group = [...waiting].slice(0, most)
      for (const one of group) waiting.delete(one)
      taken += 1
      void answer(group).finally(() => {
        taken -= 1
        send()
      })
    }
  }

  return async (request: Request): Promise<Answer> => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const waiter = { request, resolve, reject }
    waiting.add(waiter)
    send()
    return within(timeoutMs, promise).finally(() => waiting.delete(waiter))
  }
}
