export interface Options {
  readonly sections: readonly string[]
  readonly json: boolean
  /** Seconds that one subject is under load in one round. */
  readonly seconds: number
  readonly rounds: number
  /** Rows of the pool that is listed. */
  readonly rows: number
  /** Slots of the tables of many. */
  readonly slots: number
  /** Rows of the largest pool of "size". */
  readonly largest: number
  /** Expired rows that "sweep" sweeps. */
  readonly expired: number
  /** Folder of the page of the last run; null: none is written. */
  readonly page: string | null
  /** Documents of earlier runs that the page is made from. With any, nothing is run. */
  readonly from: readonly string[]
}

export type Parsed =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'help' }
  | { readonly kind: 'fault'; readonly detail: string }

const defaults = { seconds: 0.8, rounds: 5, rows: 1_000_000, slots: 1_000, largest: 10_000_000, expired: 1_000_000 }

const limits = {
  seconds: { pattern: /^\d{1,4}(?:\.\d{1,3})?$/, min: 0.05, rule: 'a number of seconds from 0.05' },
  rounds: { pattern: /^\d{1,4}$/, min: 1, rule: 'a whole number from 1' },
  rows: { pattern: /^\d{1,9}$/, min: 1, rule: 'a whole number from 1' },
  // The witness lists no more in one page, which is how the bench learns that all are copied.
  slots: { pattern: /^(?:1000|\d{1,3})$/, min: 16, rule: 'a whole number from 16 to 1000' },
  // Ten million are about 6 GB with all that belongs to them.
  largest: { pattern: /^1(?:0{3,7}|e[3-7])$/, min: 1_000, rule: 'a power of ten from 1000 to 1e7' },
  expired: { pattern: /^\d{1,8}$/, min: 1, rule: 'a whole number from 1' },
}

const isFigure = (name: string): name is keyof typeof limits => Object.hasOwn(limits, name)

/** The sections that a word stands for: the one of that name, and those whose names go on from it with a hyphen. */
const meantBy = (word: string, known: readonly string[]): readonly string[] =>
  known.filter(section => section === word || section.startsWith(`${word}-`))

/** `--name value` or `--name=value`; whatever is no option is a section or a group. None named: all, in their order. */
export const parseArguments = (args: readonly string[], known: readonly string[]): Parsed => {
  const figures = { ...defaults }
  const named = new Set<string>()
  const from: string[] = []
  let json = false
  let page: string | null = null
  const left = args.flatMap(argument => (/^--[^=]*=/.test(argument) ? splitOnce(argument) : [argument]))
  for (let argument = left.shift(); argument !== undefined; argument = left.shift()) {
    const name = argument.replace(/^--/, '')
    if (argument === '--help' || argument === '-h') return { kind: 'help' }
    if (argument === '--json') json = true
    else if (argument === '--page') {
      page = left.shift() ?? ''
      if (page === '' || page.startsWith('-')) return { kind: 'fault', detail: '--page must be a folder' }
    } else if (argument === '--from') {
      while (left[0] !== undefined && !left[0].startsWith('-')) from.push(left.shift() ?? '')
      if (from.length === 0) return { kind: 'fault', detail: '--from must be followed by files of --json' }
    } else if (argument.startsWith('--') && isFigure(name)) {
      const { pattern, min, rule } = limits[name]
      const value = left.shift() ?? ''
      if (!pattern.test(value) || Number(value) < min) return { kind: 'fault', detail: `${argument} must be ${rule}` }
      figures[name] = Number(value)
    } else if (argument.startsWith('-')) return { kind: 'fault', detail: `there is no option ${argument}` }
    else {
      const meant = meantBy(argument, known)
      for (const section of meant) named.add(section)
      if (meant.length === 0)
        return { kind: 'fault', detail: `there is no section "${argument}"; there are ${known.join(', ')}` }
    }
  }
  if (from.length > 0 && page === null) return { kind: 'fault', detail: '--from needs --page: it runs nothing' }
  if (from.length > 0 && named.size > 0) return { kind: 'fault', detail: '--from runs nothing: name no sections' }
  const sections = known.filter(section => named.size === 0 || named.has(section))
  return { kind: 'run', options: { sections, json, page, from, ...figures } }
}

const splitOnce = (argument: string): string[] => {
  const at = argument.indexOf('=')
  return [argument.slice(0, at), argument.slice(at + 1)]
}

export const usage = (known: readonly string[]): string => `pnpm bench [section …] [options]

Sections: ${known.join(', ')}. None named: all of them.
The first part of a name stands for all that begin with it: "lease" for "lease-get" and the others.

  --seconds N  seconds that one subject is under load in one round (${defaults.seconds})
  --rounds N   rounds, of which the medians are shown (${defaults.rounds})
  --rows N     rows of the pool that "list" lists (${defaults.rows})
  --slots N    slots of the tables of many slots of "lease-…" (${defaults.slots})
  --largest N  rows of the largest pool of "size", a power of ten (1e7)
  --expired N  expired rows that "sweep" sweeps (${defaults.expired})
  --page DIR   write the last run to DIR/benchmarks/: last-run.md, last-run.json and plots
  --from F …   with --page: run nothing, make the page from files of --json; of a section the last one counts
  --json       one JSON document on standard output in place of the tables
`
