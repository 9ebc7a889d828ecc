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
}

export type Parsed =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'help' }
  | { readonly kind: 'fault'; readonly detail: string }

const defaults = { seconds: 0.8, rounds: 5, rows: 1_000_000, slots: 1_000 }

const limits = {
  seconds: { pattern: /^\d{1,4}(?:\.\d{1,3})?$/, min: 0.05, rule: 'a number of seconds from 0.05' },
  rounds: { pattern: /^\d{1,4}$/, min: 1, rule: 'a whole number from 1' },
  rows: { pattern: /^\d{1,9}$/, min: 1, rule: 'a whole number from 1' },
  // The witness lists no more in one page, which is how the bench learns that all are copied.
  slots: { pattern: /^(?:1000|\d{1,3})$/, min: 16, rule: 'a whole number from 16 to 1000' },
}

const isFigure = (name: string): name is keyof typeof limits => Object.hasOwn(limits, name)

/** `--name value` or `--name=value`; whatever is no option is a section. None named: all of them, in their order. */
export const parseArguments = (args: readonly string[], known: readonly string[]): Parsed => {
  const figures = { ...defaults }
  const named = new Set<string>()
  let json = false
  const left = args.flatMap(argument => (argument.startsWith('--') ? argument.split('=', 2) : [argument]))
  for (let argument = left.shift(); argument !== undefined; argument = left.shift()) {
    const name = argument.replace(/^--/, '')
    if (argument === '--help' || argument === '-h') return { kind: 'help' }
    if (argument === '--json') json = true
    else if (argument.startsWith('--') && isFigure(name)) {
      const { pattern, min, rule } = limits[name]
      const value = left.shift() ?? ''
      if (!pattern.test(value) || Number(value) < min) return { kind: 'fault', detail: `${argument} must be ${rule}` }
      figures[name] = Number(value)
    } else if (argument.startsWith('-')) return { kind: 'fault', detail: `there is no option ${argument}` }
    else if (known.includes(argument)) named.add(argument)
    else return { kind: 'fault', detail: `there is no section "${argument}"; there are ${known.join(', ')}` }
  }
  const sections = known.filter(section => named.size === 0 || named.has(section))
  return { kind: 'run', options: { sections, json, ...figures } }
}

export const usage = (known: readonly string[]): string => `pnpm bench [section …] [options]

Sections: ${known.join(', ')}. None named: all of them.

  --seconds N  seconds that one subject is under load in one round (${defaults.seconds})
  --rounds N   rounds, of which the medians are shown (${defaults.rounds})
  --rows N     rows of the pool that "list" lists (${defaults.rows})
  --slots N    slots of the tables of many slots of "lease-…" (${defaults.slots})
  --json       one JSON document on standard output in place of the tables
`
