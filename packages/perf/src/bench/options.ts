import { type NumberRule, parseCommandLine, readNumber, UsageError } from '../shared/cli.ts'
import { POOL } from './environment/names.ts'

/** Another server with the same routes, which something else started. */
export interface Peer {
  readonly host: string
  readonly port: number
  /** In which the bench reserves. */
  readonly pool: string
  /** Whole lines, each with CRLF. */
  readonly headers: string
}

/** How often and how long the targets are under load. */
export interface Timing {
  readonly rounds: number
  /** How long each target is under load in one round. */
  readonly seconds: number
  /** How long each target is under each load before the first round, so that V8 has compiled what the load executes. */
  readonly warmUpSeconds: number
}

export interface BenchOptions extends Timing {
  readonly sections: readonly string[]
  /** Names in the database of `list`. */
  readonly rows: number
  /** Slots of the loads on many slots. */
  readonly slots: number
  /** The folder of another checkout of this project to compare with; null: none. */
  readonly against: string | null
  /** Another server to compare with; null: none. */
  readonly peer: Peer | null
  /** The URL of a Postgres server to use; null: one is started. */
  readonly postgres: string | null
}

export const DEFAULT_SECONDS = 0.8

const numbers = {
  seconds: {
    fallback: DEFAULT_SECONDS,
    pattern: /^\d{1,4}(?:\.\d{1,3})?$/,
    min: 0.05,
    rule: 'a number of seconds from 0.05',
  },
  'warm-up': { fallback: 3, pattern: /^\d{1,4}(?:\.\d{1,3})?$/, min: 0, rule: 'a number of seconds' },
  rounds: { fallback: 5, pattern: /^\d{1,4}$/, min: 1, rule: 'a whole number from 1' },
  rows: { fallback: 1_000_000, pattern: /^\d{1,9}$/, min: 1, rule: 'a whole number from 1' },
  // The witness lists at most 1000 leases in a page, and one page shows that all of them are copied.
  slots: { fallback: 1_000, pattern: /^(?:1000|\d{1,3})$/, min: 16, rule: 'a whole number from 16 to 1000' },
} satisfies Record<string, NumberRule>

/** A section, and what it can be compared with. */
export interface KnownSection {
  readonly name: string
  readonly comparesWith: 'nothing' | 'checkout' | 'server'
}

const PEER_VALUES = ['pool', 'token', 'postgres'] as const

/** The sections that a word names: the section of that name, or all whose names start with it and a hyphen. */
const findSections = (word: string, known: readonly string[]): readonly string[] => {
  const found = known.filter(section => section === word || section.startsWith(`${word}-`))
  if (found.length === 0) throw new UsageError(`unknown section "${word}"; the sections are ${known.join(', ')}`)
  return found
}

/** Throws UsageError. `token`: of each of its requests. */
const parsePeer = (text: string, pool = POOL, token?: string): Peer => {
  const url = URL.parse(text)
  if (url?.protocol !== 'http:' || url.pathname !== '/' || url.search !== '' || url.username !== '')
    throw new UsageError(`--against ${text}: a server must be given as http://host:port`)
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || 80),
    pool,
    headers: token === undefined ? '' : `Authorization: Bearer ${token}\r\n`,
  }
}

const listComparable = (sections: readonly KnownSection[], isServer: boolean): readonly string[] =>
  sections
    .filter(({ comparesWith }) => comparesWith === 'server' || (comparesWith === 'checkout' && !isServer))
    .map(({ name }) => name)

/** Null: help was requested. Throws UsageError. */
export const parseBenchOptions = (args: readonly string[], known: readonly KnownSection[]): BenchOptions | null => {
  const line = parseCommandLine(args, {
    values: [...Object.keys(numbers), 'against', ...PEER_VALUES],
    flags: [],
    allowPositionals: true,
  })
  if (line.flags.has('help')) return null
  const against = line.values.against ?? null
  if (against === '') throw new UsageError('--against must be the folder of another checkout, or the URL of a server')
  const isServer = against !== null && /^\w+:\/\//.test(against)
  for (const option of PEER_VALUES) {
    if (line.values[option] !== undefined && !isServer)
      throw new UsageError(`--${option} needs --against with the URL of a server`)
  }
  const available = against === null ? known.map(({ name }) => name) : listComparable(known, isServer)
  const named = new Set(line.positionals.flatMap(word => findSections(word, available)))
  return {
    sections: available.filter(section => named.size === 0 || named.has(section)),
    seconds: readNumber(line, 'seconds', numbers.seconds),
    warmUpSeconds: readNumber(line, 'warm-up', numbers['warm-up']),
    rounds: readNumber(line, 'rounds', numbers.rounds),
    rows: readNumber(line, 'rows', numbers.rows),
    slots: readNumber(line, 'slots', numbers.slots),
    against: isServer ? null : against,
    peer: isServer ? parsePeer(against, line.values.pool, line.values.token) : null,
    postgres: line.values.postgres ?? null,
  }
}

export const benchUsage = (known: readonly KnownSection[]): string => `pnpm bench [section …] [options]

Sections: ${known.map(({ name }) => name).join(', ')}. Default: all of them.
The first part of a name selects every section that starts with it: "lease" selects "lease-workerd" and so on.

  --seconds N    how long each target is under load in one round (${numbers.seconds.fallback})
  --warm-up N    how many seconds each target is under each load before the first round (${numbers['warm-up'].fallback})
  --rounds N     number of rounds; medians are reported (${numbers.rounds.fallback})
  --rows N       names in the database of "list" (${numbers.rows.fallback})
  --slots N      slots of the loads on many slots of "lease-…" (${numbers.slots.fallback})
  --against DIR  compare with the services of another checkout of this project, whose dependencies are installed:
                 ${listComparable(known, false).join(', ')}
  --against URL  compare with another server with the same routes, http://host:port: ${listComparable(known, true).join(', ')}.
                 It keeps the names that the bench reserves
  --pool DOMAIN  the pool of that server in which the bench reserves (${POOL})
  --token TOKEN  the bearer token that it requires
  --postgres URL the Postgres server for this API, so that both can have the same; default: one is started
  --help         print this text
`
