export const invariants = [
  'one owner a name',
  'the history replays to the table',
  'no acknowledged write lost, reads see it',
  'records reported as they went',
  'zone equal to desired at rest',
  'a slot is linearizable',
  'one holder a lease generation',
  'every line of a log once, in order',
  'every failed call explained by a fault',
  'every fault recovered from',
  'memory and connections bounded',
  'no secret in a log',
  'answers and processes as expected',
  'three faults a minute',
] as const
export type Invariant = (typeof invariants)[number]

export interface Verdict {
  readonly invariant: Invariant
  readonly checks: number
  readonly broken: readonly string[]
}

export interface InvariantLog {
  /** Whether it held, for so many things looked at; what broke it is told at once, each once. */
  readonly add: (invariant: Invariant, checks: number, faults: readonly string[]) => void
  readonly all: () => readonly Verdict[]
}

export const createInvariantLog = (tell: (line: string) => void): InvariantLog => {
  const verdicts = new Map(invariants.map(invariant => [invariant, { checks: 0, broken: new Set<string>() }]))
  return {
    add(invariant, checks, faults) {
      const verdict = verdicts.get(invariant)
      if (!verdict) return
      verdict.checks += checks
      for (const fault of faults) {
        if (!verdict.broken.has(fault)) tell(`BROKEN ${invariant}: ${fault}`)
        verdict.broken.add(fault)
      }
    },
    all: () => [...verdicts].map(([invariant, { checks, broken }]) => ({ invariant, checks, broken: [...broken] })),
  }
}
