import type { Operation } from '@pool/contract'
import { Attempt, type AttemptOutcome, type AttemptResult } from './attempt.ts'
import {
  type AttemptFailure,
  DEFAULT_RETRY_POLICY,
  mayHaveTakenEffect,
  planRetry,
  type RepeatRule,
  type RetryPolicy,
} from './domain/retry.ts'
import { DeadlineError } from './errors.ts'
import { type AttemptInfo, type CallInfo, notify } from './hooks.ts'
import type { OperationResult } from './operation-types.ts'
import {
  CALL_OPTIONS,
  type CallOptions,
  type CallRule,
  type ClientOptions,
  checkClientOptions,
  checkOptions,
  DEFAULT_ATTEMPT_TIMEOUT_MS,
  DEFAULT_DEADLINE_MS,
  type Service,
} from './options.ts'
import { parseBaseUrl, type RequestParts, toUrl } from './request.ts'
import { createRandomId, pause, systemTiming } from './timing.ts'

export interface Transport {
  /**
   * Sends a request until it has a result, as often as the rule permits. Resolves with each documented response that is
   * not an error. Rejects with a ClientError, with the reason of an aborted signal, or with a TypeError if the request
   * cannot be sent.
   */
  call<const Op extends Operation>(
    operation: Op,
    parts: RequestParts,
    rule: CallRule,
    options?: CallOptions,
  ): Promise<OperationResult<Op>>
}

/** Whether a response decides about the earlier attempts too: under a key, it is the outcome of the first of them. */
const isDecisive = (rule: RepeatRule, failure: AttemptFailure): boolean =>
  rule === 'under-key' && failure.kind === 'response' && failure.status < 500 && failure.status !== 429

/** Creates the transport of a service. Throws a TypeError if an option is invalid. */
export const createTransport = (options: ClientOptions, service: Service): Transport => {
  checkClientOptions(options)
  const baseUrl = parseBaseUrl(options.baseUrl, service.operations)
  const { hooks = {}, timing = systemTiming } = options
  const policy: RetryPolicy = { ...DEFAULT_RETRY_POLICY, ...options.retry }

  const run = async (
    operation: Operation,
    parts: RequestParts,
    rule: CallRule,
    callOptions: CallOptions,
  ): Promise<AttemptResult> => {
    checkOptions(operation.id, callOptions, CALL_OPTIONS)
    const { signal, ...limits } = callOptions
    const startedAt = timing.now()
    const call: CallInfo = { operation: operation.id, method: operation.method.toUpperCase(), route: operation.path }
    const deadlineMs = limits.deadlineMs ?? rule.deadlineMs ?? options.deadlineMs ?? DEFAULT_DEADLINE_MS
    const attemptTimeoutMs =
      limits.attemptTimeoutMs ?? rule.attemptTimeoutMs ?? options.attemptTimeoutMs ?? DEFAULT_ATTEMPT_TIMEOUT_MS
    const remaining = (): number => deadlineMs - (timing.now() - startedAt)
    const isWrite = operation.method !== 'get' && !operation.isRead
    let attempts = 0
    let isUnknown = false

    /** Sends one request. Resolves with its result, or with the pause before the next one. */
    const attempt = async (url: string): Promise<AttemptResult | number> => {
      attempts += 1
      const info: AttemptInfo = { ...call, attempt: attempts, requestId: createRandomId() }
      const sentAt = timing.now()
      const end = (ending: { status?: number; error?: unknown; retryInMs: number | null }): void => {
        if (hooks.onAttemptEnd) notify(hooks.onAttemptEnd, { ...info, durationMs: timing.now() - sentAt, ...ending })
      }
      const bodyMs = Math.max(0, remaining())
      const headersMs = Math.min(attemptTimeoutMs, bodyMs)
      let outcome: AttemptOutcome
      try {
        signal?.throwIfAborted()
        const request = { operation, url, parts, info, signal, headersMs, bodyMs }
        outcome = await new Attempt({ options, service, timing }, request).run()
      } catch (error) {
        end({ error, retryInMs: null })
        throw error
      }
      if (outcome.kind === 'result') {
        end({ status: outcome.result.status, retryInMs: null })
        return outcome.result
      }
      const { failure } = outcome
      const status = failure.kind === 'response' ? { status: failure.status } : {}
      const random = timing.random()
      const isLate = failure.kind === 'no-response' && remaining() <= 0
      const retryInMs = planRetry({
        rule: rule.repeat,
        failure,
        attempts,
        policy,
        remainingMs: remaining(),
        random,
      })
      isUnknown = isWrite && !isDecisive(rule.repeat, failure) && (isUnknown || mayHaveTakenEffect(failure))
      const facts = { operation: call.operation, attempts, requestId: info.requestId, isOutcomeUnknown: isUnknown }
      const error = isLate ? new DeadlineError(facts, deadlineMs) : outcome.toError(facts)
      end({ ...status, error, retryInMs })
      if (retryInMs === null) throw error
      return retryInMs
    }

    const repeat = async (): Promise<AttemptResult> => {
      const url = toUrl(baseUrl, operation, parts)
      for (;;) {
        const result = await attempt(url)
        if (typeof result !== 'number') return result
        await pause(timing, result, signal)
      }
    }

    const finish = (ending: { error?: unknown }): void => {
      notify(hooks.onCallEnd, { ...call, attempts, durationMs: timing.now() - startedAt, ...ending })
    }
    const traced = async (): Promise<AttemptResult> => {
      try {
        const result = await repeat()
        finish({})
        return result
      } catch (error) {
        finish({ error })
        throw error
      }
    }
    return hooks.traceCall ? hooks.traceCall(call, traced) : traced()
  }

  return {
    // The response was validated with the schema from which the type is derived.
    call: (operation, parts, rule, callOptions = {}) => run(operation, parts, rule, callOptions) as Promise<never>,
  }
}
