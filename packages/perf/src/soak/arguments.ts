export interface Options {
  readonly minutes: number
  /** Of the schedule and of what every client does; when it is answered is not in it. */
  readonly seed: number
  readonly json: boolean
}

export type Parsed =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'help' }
  | { readonly kind: 'fault'; readonly detail: string }

const defaults = { minutes: 20, seed: 1 }

const limits = {
  minutes: { pattern: /^\d{1,4}(?:\.\d{1,3})?$/, min: 0.1, rule: 'a number of minutes from 0.1' },
  seed: { pattern: /^\d{1,9}$/, min: 0, rule: 'a whole number from 0' },
}

const isFigure = (name: string): name is keyof typeof limits => Object.hasOwn(limits, name)

/** `--name value` or `--name=value`. */
export const parseArguments = (args: readonly string[]): Parsed => {
  const figures = { ...defaults }
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
    } else return { kind: 'fault', detail: `there is no option ${argument}` }
  }
  return { kind: 'run', options: { ...figures, json } }
}

export const usage = `pnpm soak [options]

Runs the whole system under mixed traffic and faults, checks the invariants all the time, and ends with a table.
Exit code 0: nothing was broken; 1: something was; 2: these options are not understood.

  --minutes N  how long (${defaults.minutes})
  --seed N     of schedule and traffic (${defaults.seed})
  --json       one JSON document on standard output in place of the tables
`
