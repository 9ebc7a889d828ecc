export const services = ['api', 'witness'] as const
export type ServiceName = (typeof services)[number]

export interface Options {
  /** Over all services. */
  readonly requests: number
  readonly seed: string
  readonly services: readonly ServiceName[]
  readonly json: boolean
}

export type Parsed =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'help' }
  | { readonly kind: 'fault'; readonly detail: string }

const DEFAULT_REQUESTS = 240_000

/** `--name value` or `--name=value`. Without `--seed` the run has the one that is given here. */
export const parseArguments = (args: readonly string[], anySeed: string): Parsed => {
  let options: Options = { requests: DEFAULT_REQUESTS, seed: anySeed, services, json: false }
  const left = args.flatMap(argument => (argument.startsWith('--') ? argument.split('=', 2) : [argument]))
  for (let argument = left.shift(); argument !== undefined; argument = left.shift()) {
    if (argument === '--help' || argument === '-h') return { kind: 'help' }
    if (argument === '--json') {
      options = { ...options, json: true }
      continue
    }
    if (argument !== '--requests' && argument !== '--seed' && argument !== '--service') {
      return { kind: 'fault', detail: `there is no option ${argument}` }
    }
    const value = left.shift() ?? ''
    const service = services.find(name => name === value)
    if (argument === '--requests') {
      if (!/^\d{3,8}$/.test(value) || Number(value) < 200)
        return { kind: 'fault', detail: '--requests must be a whole number from 200' }
      options = { ...options, requests: Number(value) }
    } else if (argument === '--seed') {
      if (!/^[A-Za-z0-9-]{1,40}$/.test(value))
        return { kind: 'fault', detail: '--seed must be 1 to 40 letters, digits and hyphens' }
      options = { ...options, seed: value }
    } else if (service) options = { ...options, services: [service] }
    else return { kind: 'fault', detail: `--service must be ${services.join(' or ')}` }
  }
  return { kind: 'run', options }
}

export const usage = `pnpm fuzz [options]

  --requests N    in all, over both services (${DEFAULT_REQUESTS})
  --seed S        letters, digits and hyphens: the same seed makes the same requests (chance)
  --service NAME  ${services.join(' or ')} alone (both)
  --json          one JSON document on standard output in place of the table
`
