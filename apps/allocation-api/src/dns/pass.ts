import { pauseMs } from './backoff.ts'
import type { Claim } from './claim.ts'
import { planOf } from './plan.ts'
import type { ApplyResult, DnsProvider, ReadResult, Unavailable } from './provider.ts'
import { isAtOrBelow } from './record-set.ts'
import type { DueName, ZoneStore } from './zone-store.ts'

/** What became of the names of a pass, for those who wait: the version applied, or why it was not. */
export interface PassReport {
  readonly applied: ReadonlyMap<string, number>
  readonly failed: ReadonlyMap<string, string>
  /** The pass took as many names as it can; there may be others. */
  readonly isMoreDue: boolean
}

export interface PassDependencies {
  readonly zones: Pick<ZoneStore, 'due' | 'intend' | 'applied' | 'failed'>
  readonly provider: Pick<DnsProvider, 'read' | 'apply'>
  /** From 0 to 1. */
  readonly random: () => number
  /** Milliseconds that one call of the provider may take. */
  readonly callTimeoutMs: number
  readonly onCall: (operation: 'read' | 'apply', outcome: 'done' | 'refused' | 'unavailable', seconds: number) => void
  /** The provider threw, which its contract does not allow. */
  readonly onDefect: (error: unknown) => void
}

/** Names taken into one pass: what one provider call can carry, and a bound on memory. */
const BATCH = 1_000

/**
 * One pass over a zone, under its claim: read what is there, subtract, apply the difference, remember what is applied.
 * It is the same after a commit, a crash or an outage, and doing it once more changes nothing.
 */
export const createPass = (deps: PassDependencies) => {
  const { zones, provider } = deps

  /** The provider's answer, or `unavailable` at the deadline even from one that does not heed its signal. */
  const call = async <Result extends ReadResult | ApplyResult>(
    operation: 'read' | 'apply',
    run: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result | Unavailable> => {
    const started = performance.now()
    const signal = AbortSignal.timeout(deps.callTimeoutMs)
    const late = new Promise<Unavailable>(resolve => {
      const reason = `The DNS provider did not answer within ${deps.callTimeoutMs / 1_000} s.`
      signal.addEventListener('abort', () => resolve({ kind: 'unavailable', reason }))
    })
    const result = await Promise.race([run(signal), late]).catch((error: unknown): Unavailable => {
      deps.onDefect(error)
      return { kind: 'unavailable', reason: 'The DNS provider could not be asked; the log has more.' }
    })
    const refused = result.kind === 'applied' && result.refused.length > 0
    const outcome = result.kind === 'unavailable' ? 'unavailable' : refused ? 'refused' : 'done'
    deps.onCall(operation, outcome, (performance.now() - started) / 1_000)
    return result
  }

  const fail = async (zone: string, names: readonly DueName[], reasonOf: (name: DueName) => string, leastMs = 0) =>
    zones.failed(
      zone,
      names.map(name => ({
        subdomain: name.subdomain,
        version: name.version,
        reason: reasonOf(name),
        pauseMs: Math.max(leastMs, pauseMs(name.attempts + 1, deps.random())),
      })),
    )

  return async (zone: string, claim: Claim): Promise<PassReport> => {
    const due = await zones.due(zone, BATCH)
    const applied = new Map<string, number>()
    const failed = new Map<string, string>()
    const isMoreDue = due.length === BATCH
    if (due.length === 0) return { applied, failed, isMoreDue }
    const fqdn = (name: DueName) => `${name.subdomain}.${zone}`

    const giveUp = async ({ reason, retryAfterMs }: Unavailable): Promise<PassReport> => {
      await fail(zone, due, () => reason, retryAfterMs)
      return { applied, failed: new Map(due.map(name => [name.subdomain, reason])), isMoreDue }
    }

    const current = await call('read', signal => provider.read(zone, due.map(fqdn), signal))
    if (current.kind === 'unavailable') return giveUp(current)

    const { changes, conflicts } = planOf(current.records, due)
    for (const [subdomain, reason] of conflicts) failed.set(subdomain, reason)
    const wanted = due.filter(name => !conflicts.has(name.subdomain))
    if (changes.length > 0) {
      await zones.intend(zone, wanted)
      await claim.confirm()
      const result = await call('apply', signal => provider.apply(zone, changes, signal))
      if (result.kind === 'unavailable') return giveUp(result)
      for (const name of wanted) {
        const refusal = result.refused.find(refused => isAtOrBelow(refused.name, fqdn(name)))
        if (refusal) failed.set(name.subdomain, `The DNS provider refused ${refusal.name}: ${refusal.reason}`)
      }
    }

    const done = wanted.filter(name => !failed.has(name.subdomain))
    for (const name of done) applied.set(name.subdomain, name.version)
    await zones.applied(zone, done)
    const setAside = due.filter(name => failed.has(name.subdomain))
    await fail(zone, setAside, name => failed.get(name.subdomain) ?? '')
    if (failed.size === 0) await claim.converged()
    return { applied, failed, isMoreDue }
  }
}
