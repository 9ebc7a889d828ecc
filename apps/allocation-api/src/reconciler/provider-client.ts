import type { ApplyResult, DnsProvider, ReadResult, Unavailable } from '../dns/provider.ts'
import { afterFailure, type Breaker, closed, heldBackMs, pauseOf } from './domain/circuit-breaker.ts'

export interface CallsDependencies {
  readonly provider: Pick<DnsProvider, 'read' | 'apply'>
  /** Milliseconds that one call of the provider may take. */
  readonly deadlineMs: number
  /** Milliseconds, of a clock that never goes back. */
  readonly now: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly onCall: (operation: 'read' | 'apply', outcome: 'done' | 'refused' | 'unavailable', seconds: number) => void
  /** The provider threw, which its contract does not allow. */
  readonly onDefect: (error: unknown) => void
}

/** What is called through here waits for the provider's answer; of an unavailable one it says for how long. */
export type Calls = ReturnType<typeof createCalls>

/** How soon to look again when another call is finding out whether the provider is back. */
const PROBE_PATIENCE_MS = 500

/**
 * Every call of the provider: bounded in time, even where the provider does not heed its signal, and held back by the
 * breaker while the provider is down or has asked to be left alone. `unavailable` has `retryAfterMs` unless it is the
 * zone's.
 */
export const createCalls = ({ provider, deadlineMs, now, random, onCall, onDefect }: CallsDependencies) => {
  let breaker: Breaker = closed
  let lastReason = ''
  let isProbing = false

  const held = (ms: number): Unavailable => ({
    kind: 'unavailable',
    reason: `${lastReason} It is not asked again for ${Math.ceil(ms / 1_000)} s.`,
    retryAfterMs: ms,
  })

  const call = async <Result extends ReadResult | ApplyResult>(
    operation: 'read' | 'apply',
    run: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result | Unavailable> => {
    const heldMs = heldBackMs(breaker, now())
    if (heldMs > 0 || isProbing) return held(Math.max(heldMs, PROBE_PATIENCE_MS))
    const isProbe = breaker.isOpen
    isProbing = isProbe
    const started = performance.now()
    const signal = AbortSignal.timeout(deadlineMs)
    const late = new Promise<Unavailable>(resolve => {
      const reason = `The DNS provider did not answer within ${deadlineMs / 1_000} s.`
      signal.addEventListener('abort', () => resolve({ kind: 'unavailable', reason }))
    })
    const result = await Promise.race([run(signal), late]).catch((error: unknown): Unavailable => {
      onDefect(error)
      // Of what it was asked, most likely: that must not keep other zones waiting.
      return { kind: 'unavailable', reason: 'The DNS provider could not be asked; the log has more.', scope: 'zone' }
    })
    if (isProbe) isProbing = false
    const isRefused = result.kind === 'applied' && result.refused.length > 0
    const outcome = result.kind === 'unavailable' ? 'unavailable' : isRefused ? 'refused' : 'done'
    onCall(operation, outcome, (performance.now() - started) / 1_000)
    if (result.kind !== 'unavailable' || result.scope === 'zone') {
      breaker = closed
      return result
    }
    lastReason = result.reason
    breaker = afterFailure(breaker, { now: now(), retryAfterMs: result.retryAfterMs, random: random() })
    return { ...result, retryAfterMs: pauseOf(breaker, now()) }
  }

  return {
    read: (zone: string, owners: readonly string[] | 'all'): Promise<ReadResult> =>
      call('read', async signal => provider.read(zone, owners, signal)),
    apply: (zone: string, changes: Parameters<DnsProvider['apply']>[1]): Promise<ApplyResult> =>
      call('apply', async signal => provider.apply(zone, changes, signal)),
    /** Whether the provider is being left alone. */
    isHeldBack: (): boolean => heldBackMs(breaker, now()) > 0,
  }
}
