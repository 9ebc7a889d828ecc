import { type NumberRule, parseCommandLine, readNumber } from '../shared/cli.ts'

export interface SoakOptions {
  readonly minutes: number
  /** Determines the schedule and the operations of each client, but not when they are answered. */
  readonly seed: number
  readonly json: boolean
}

const numbers = {
  minutes: { fallback: 20, pattern: /^\d{1,4}(?:\.\d{1,3})?$/, min: 0.1, rule: 'a number of minutes from 0.1' },
  seed: { fallback: 1, pattern: /^\d{1,9}$/, min: 0, rule: 'a whole number from 0' },
} satisfies Record<string, NumberRule>

/** Null: help was requested. Throws UsageError. */
export const parseSoakOptions = (args: readonly string[]): SoakOptions | null => {
  const line = parseCommandLine(args, { values: Object.keys(numbers), flags: ['json'] })
  if (line.flags.has('help')) return null
  return {
    minutes: readNumber(line, 'minutes', numbers.minutes),
    seed: readNumber(line, 'seed', numbers.seed),
    json: line.flags.has('json'),
  }
}

export const soakUsage = `pnpm soak [options]

Runs the whole system under mixed traffic with fault injection, checks the invariants continuously, and prints a report.
Exit code 0: no violation; 1: violations; 2: invalid options.

  --minutes N  how long (${numbers.minutes.fallback})
  --seed N     seed of the schedule and the traffic (${numbers.seed.fallback})
  --json       print one JSON document instead of the tables
  --help       print this text
`
