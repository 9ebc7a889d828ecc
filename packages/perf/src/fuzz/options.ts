import { parseCommandLine, readNumber, UsageError } from '../shared/cli.ts'

export const services = ['api', 'witness'] as const
export type ServiceName = (typeof services)[number]

export interface FuzzOptions {
  /** Sum over all services. */
  readonly requests: number
  readonly seed: string
  readonly services: readonly ServiceName[]
  readonly json: boolean
}

const requestsRule = { fallback: 240_000, pattern: /^\d{3,8}$/, min: 200, rule: 'a whole number from 200' }

/** Null: help was requested. Throws UsageError. `randomSeed` is used without `--seed`. */
export const parseFuzzOptions = (args: readonly string[], randomSeed: string): FuzzOptions | null => {
  const line = parseCommandLine(args, { values: ['requests', 'seed', 'service'], flags: ['json'] })
  if (line.flags.has('help')) return null
  const { seed = randomSeed, service } = line.values
  if (!/^[A-Za-z0-9-]{1,40}$/.test(seed)) throw new UsageError('--seed must be 1 to 40 letters, digits and hyphens')
  const chosen = services.filter(name => service === undefined || name === service)
  if (chosen.length === 0) throw new UsageError(`--service must be ${services.join(' or ')}`)
  return {
    requests: readNumber(line, 'requests', requestsRule),
    seed,
    services: chosen,
    json: line.flags.has('json'),
  }
}

export const fuzzUsage = `pnpm fuzz [options]

Sends valid and invalid requests to both services and checks every response.
Exit code 0: no violation; 1: violations; 2: invalid options.

  --requests N    number of requests over both services (${requestsRule.fallback})
  --seed S        letters, digits and hyphens; the same seed generates the same requests (random)
  --service NAME  only ${services.join(' or ')} (both)
  --json          print one JSON document instead of the table
  --help          print this text
`
