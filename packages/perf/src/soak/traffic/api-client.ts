import { setTimeout as sleep } from 'node:timers/promises'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Replica } from '../environment/replica.ts'
import type { Recorder } from './recorder.ts'

export interface Asked {
  readonly operation: string
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** On the operator's address. */
  readonly isOperator?: boolean
}

export interface Answer {
  readonly status: number
  readonly body: unknown
  readonly start: number
  readonly end: number
}

/** An answer to an intention, and how often it was asked for. */
export interface Settled extends Answer {
  readonly intention: string
  readonly attempts: number
}

/** Longer than the service takes to give up on the database and the provider. */
export const PATIENCE_MS = 8_000
/** A replica that failed is left alone so long, as a load balancer would. */
const AVOIDED_MS = 1_000
const GIVEN_UP_MS = 60_000

export interface ApiClient {
  /** One request to one replica; undefined: no answer. */
  readonly ask: (replica: Replica, asked: Asked, requestId?: string) => Promise<Answer | undefined>
  /** One request to any. */
  readonly askAny: (asked: Asked) => Promise<Answer | undefined>
  /**
   * Asks until it is answered, as a correct client does: with one Idempotency-Key, since it cannot know what became of an attempt
   * that was not answered. Undefined: nobody answered within a minute.
   */
  readonly settle: (asked: Asked) => Promise<Settled | undefined>
}

export interface ClientOptions {
  readonly name: string
  readonly replicas: readonly Replica[]
  readonly operatorToken: string
  readonly dice: Prng
  readonly recorder: Recorder
}

export const createApiClient = ({ name, replicas, operatorToken, dice, recorder }: ClientOptions): ApiClient => {
  const avoided = new Map<Replica, number>()
  let made = 0

  const send = async (replica: Replica, asked: Asked, requestId?: string) => {
    const { method, path, body, headers, isOperator } = asked
    const response = await fetch((isOperator ? replica.operatorUrl : replica.url) + path, {
      method,
      headers: {
        ...(requestId && { 'X-Request-Id': requestId }),
        ...(isOperator && { Authorization: `Bearer ${operatorToken}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) }
  }
  const ask: ApiClient['ask'] = async (replica, asked, requestId) => {
    const start = Date.now()
    const answer = await send(replica, asked, requestId).catch(() => undefined)
    const end = Date.now()
    const status = answer?.status ?? null
    recorder.count(asked.operation, status)
    if (status === null || status >= 500) {
      recorder.failures.push({
        target: replica.number,
        what: `${asked.operation} (${requestId ?? name})`,
        status,
        start,
        end,
      })
      avoided.set(replica, performance.now() + AVOIDED_MS)
    }
    return answer && { ...answer, start, end }
  }
  const aReplica = () => {
    const now = performance.now()
    const good = replicas.filter(replica => (avoided.get(replica) ?? 0) < now)
    return dice.pick(good.length > 0 ? good : replicas)
  }
  return {
    ask,
    askAny: asked => ask(aReplica(), asked),
    async settle(asked) {
      made += 1
      const intention = `${name}-${made}`
      const keyed = { ...asked, headers: { 'Idempotency-Key': intention, ...asked.headers } }
      const start = Date.now()
      for (let attempts = 1; Date.now() < start + GIVEN_UP_MS; attempts += 1) {
        const answer = await ask(aReplica(), keyed, `${intention}.${attempts}`)
        if (answer && answer.status < 500) return { ...answer, start, intention, attempts }
        await sleep(100 + dice.below(300))
      }
      return undefined
    },
  }
}
