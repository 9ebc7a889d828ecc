import { isRefusedStatement, withTimeout } from './client.ts'

export interface TogetherOptions<Request, Answer> {
  /** Answers all of them, in their order, by one statement: all or none. */
  readonly ask: (requests: readonly Request[]) => Promise<readonly Answer[]>
  /** Statements under way at a time, slow ones not counted. */
  readonly lanes: number
  /** Requests that share a statement, at most. */
  readonly most: number
  /** Milliseconds after which a statement takes no lane any more: it waits for somebody, and others need not. */
  readonly slowMs: number
  /**
   * Milliseconds from the call to `DatabaseTimeout`. One that nobody waits for any more is not sent; of one that was sent
   * the effect is unknown.
   */
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
export const createBatcher = <Request, Answer>({
  ask,
  lanes,
  most,
  slowMs,
  timeoutMs,
}: TogetherOptions<Request, Answer>) => {
  const unanswered = new Set<Waiter<Request, Answer>>()
  const unsent = new Set<Waiter<Request, Answer>>()
  let taken = 0

  const answer = async (group: readonly Waiter<Request, Answer>[]): Promise<void> => {
    try {
      const answers = await ask(group.map(({ request }) => request))
      if (answers.length !== group.length) throw new Error(`${group.length} requests, ${answers.length} answers`)
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] as Answer)
    } catch (error) {
      // What the database finds wrong with one of them is not the others' fault: each who still waits is asked alone.
      if (group.length > 1 && isRefusedStatement(error)) {
        for (const one of group) if (unanswered.has(one)) await answer([one])
      } else for (const { reject } of group) reject(error)
    }
  }

  const send = (): void => {
    while (taken < lanes && unsent.size > 0) {
      const group = [...unsent].slice(0, most)
      for (const one of group) unsent.delete(one)
      taken += 1
      const leave = () => {
        taken -= 1
        send()
      }
      // Whoever is slow leaves the lane, once, and is answered all the same.
      withTimeout(slowMs, answer(group)).then(leave, leave)
    }
  }

  return async (request: Request): Promise<Answer> => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const waiter = { request, resolve, reject }
    unanswered.add(waiter)
    unsent.add(waiter)
    send()
    return withTimeout(timeoutMs, promise).finally(() => {
      unanswered.delete(waiter)
      unsent.delete(waiter)
    })
  }
}
