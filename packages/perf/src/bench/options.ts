import { type NumberRule, parseCommandLine, readNumber, UsageError } from '../shared/cli.ts'

export interface BenchOptions {
  readonly sections: readonly string[]
  readonly json: boolean
  /** How long each target is under load in one round. */
  readonly seconds: number
  readonly rounds: number
  /** Names in the database of `list`, `search`, `indexes` and `samples`. */
  readonly rows: number
  /** Slots of the loads on many slots. */
  readonly slots: number
  /** The folder of another checkout of this project to compare with; null: none. */
  readonly against: string | null
}

const numbers = {
  seconds: { fallback: 0.8, pattern: /^\d{1,4}(?:\.\d{1,3})?$/, min: 0.05, rule: 'a number of seconds from 0.05' },
  rounds: { fallback: 5, pattern: /^\d{1,4}$/, min: 1, rule: 'a whole number from 1' },
  rows: { fallback: 1_000_000, pattern: /^\d{1,9}$/, min: 1, rule: 'a whole number from 1' },
  // The witness lists at most 1000 leases in a page, and one page shows that all of them are copied.
  slots: { fallback: 1_000, pattern: /^(?:1000|\d{1,3})$/, min: 16, rule: 'a whole number from 16 to 1000' },
} satisfies Record<string, NumberRule>

/** The sections that a word names: the section of that name, or all whose names start with it and a hyphen. */
const findSections = (word: string, known: readonly string[]): readonly string[] => {
  const found = known.filter(section => section === word || section.startsWith(`${word}-`))
  if (found.length === 0) throw new UsageError(`unknown section "${word}"; the sections are ${known.join(', ')}`)
  return found
}

/** Null: help was requested. Throws UsageError. `comparable`: the sections that `--against` can run. */
export const parseBenchOptions = (
  args: readonly string[],
  known: readonly string[],
  comparable: readonly string[],
): BenchOptions | null => {
  const line = parseCommandLine(args, {
    values: [...Object.keys(numbers), 'against'],
    flags: ['json'],
    allowPositionals: true,
  })
  if (line.flags.has('help')) return null
  const against = line.values.against ?? null
  if (against === '') throw new UsageError('--against must be the folder of another checkout')
  const available = against === null ? known : comparable
  const named = new Set(line.positionals.flatMap(word => findSections(word, available)))
  return {
    sections: available.filter(section => named.size === 0 || named.has(section)),
    json: line.flags.has('json'),
    seconds: readNumber(line, 'seconds', numbers.seconds),
    rounds: readNumber(line, 'rounds', numbers.rounds),
    rows: readNumber(line, 'rows', numbers.rows),
    slots: readNumber(line, 'slots', numbers.slots),
    against,
  }
}

export const benchUsage = (
  known: readonly string[],
  comparable: readonly string[],
): string => `pnpm bench [section …] [options]

Sections: ${known.join(', ')}. Default: all of them.
The first part of a name selects every section that starts with it: "lease" selects "lease-get", "lease-put" and so on.

  --seconds N    how long each target is under load in one round (${numbers.seconds.fallback})
  --rounds N     number of rounds; medians are reported (${numbers.rounds.fallback})
  --rows N       names in the database of "list", "search", "indexes" and "samples" (${numbers.rows.fallback})
  --slots N      slots of the loads on many slots of "lease-…" (${numbers.slots.fallback})
  --against DIR  compare with the services of another checkout of this project, whose dependencies are installed:
                 the ratio this/other of ${comparable.join(', ')} with its 95 % interval
  --json         print one JSON document instead of the tables
  --help         print this text
`
