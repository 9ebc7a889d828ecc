import { METHODS } from 'node:http'
import { types } from 'node:util'
import { rejectUnknown } from './host-client.ts'
import { type FaultSpec, WRITE_METHODS } from './protocol.ts'

/** Milliseconds. The timers of Node fire at once after a longer time. */
const MAX_DELAY_MS = 2_147_483_647

const rejectMs = (ms: unknown): void => {
  if (typeof ms !== 'number')
    throw new TypeError("delay takes milliseconds as a number, then the filter: delay(300, { method: 'PUT' }).")
  if (!(ms >= 0 && ms <= MAX_DELAY_MS))
    throw new RangeError(`A delay is 0 to ${MAX_DELAY_MS} milliseconds, not ${ms}; partition() has no end of its own.`)
}

const rejectMethod = (method: unknown, allowed: readonly string[]): void => {
  const methods: readonly unknown[] = Array.isArray(method) ? method : [method]
  const isValid = methods.length > 0 && methods.every(one => typeof one === 'string' && allowed.includes(one))
  if (isValid) return
  const examples = allowed === WRITE_METHODS ? allowed.join(', ') : 'such as GET or PUT'
  const what = allowed === WRITE_METHODS ? 'a method that writes' : 'an HTTP method in capitals'
  throw new TypeError(`method must be ${what} (${examples}) or an array of them, not ${JSON.stringify(method)}.`)
}

/** The path that a client sends for this one: without a query, percent-encoded, without dot segments. */
const toSentPath = (path: string): string => new URL(`http://localhost${path}`).pathname

const rejectPath = (path: unknown): void => {
  if (types.isRegExp(path)) return
  if (typeof path !== 'string' || !path.startsWith('/'))
    throw new TypeError(
      'path must be a RegExp, or the whole path as text that begins with "/", such as "/lease/primary".',
    )
  if (path.includes('*')) throw new TypeError(`path "${path}" is compared as it is: use a RegExp for a pattern.`)
  const sent = toSentPath(path)
  if (sent !== path)
    throw new TypeError(`path "${path}" matches no request: "${sent}" is what a client sends, beside the query.`)
}

/** Throws for a fault that would affect no request, or others than the test means. */
export const rejectInvalidFault = ({ kind, filter, ms }: FaultSpec): void => {
  if (kind === 'delay') rejectMs(ms)
  rejectUnknown('the filter of a fault', filter, ['method', 'path'])
  const { method, path } = filter
  if (method !== undefined) rejectMethod(method, kind === 'kill-after-write' ? WRITE_METHODS : METHODS)
  if (path !== undefined) rejectPath(path)
}
