export const invariants = [
  'one owner per name',
  'released names stay with their client for the cool-off',
  'updated names always have an address',
  'history replays to the table',
  'acknowledged writes are durable and visible',
  'writes have no effect after their 503',
  'record history is consistent',
  'zone equals the desired records',
  'lease slots are linearizable',
  'one holder per lease generation',
  'one leader per slot',
  'no write of a former leader',
  'log lines arrive once, in order',
  'every failed call is attributable to a fault',
  'recovery after every fault',
  'ready within 5 s after every fault',
  'no resource leak',
  'no secret in logs',
  'no anomaly in responses or processes',
  'at least three faults per minute',
] as const
export type Invariant = (typeof invariants)[number]

export interface InvariantResult {
  readonly invariant: Invariant
  readonly checks: number
  readonly violations: readonly string[]
}

/** Collects the results of all checks. Reports each violation once, immediately. */
export class InvariantChecker {
  readonly #report: (line: string) => void
  readonly #results = new Map(invariants.map(name => [name, { checks: 0, violations: new Set<string>() }]))

  constructor(report: (line: string) => void) {
    this.#report = report
  }

  record(invariant: Invariant, checks: number, violations: readonly string[]): void {
    const result = this.#results.get(invariant)
    if (!result) return
    result.checks += checks
    for (const violation of violations) {
      if (!result.violations.has(violation)) this.#report(`VIOLATION ${invariant}: ${violation}`)
      result.violations.add(violation)
    }
  }

  reportAnomaly(description: string): void {
    this.record('no anomaly in responses or processes', 0, [description])
  }

  get results(): InvariantResult[] {
    return [...this.#results].map(([invariant, { checks, violations }]) => ({
      invariant,
      checks,
      violations: [...violations],
    }))
  }
}
