import { fileURLToPath } from 'node:url'
import { Environment } from '../bench/environment/environment.ts'
import { type NumberRule, parseCommandLine, readNumber, runCommand, UsageError } from '../shared/cli.ts'
import { describeMachine } from '../shared/machine.ts'
import { type ProfileOptions, pathNames, profile, usesPostgres } from './profile.ts'

const USERS: NumberRule & { fallback: number } = {
  fallback: 64,
  pattern: /^\d{1,4}$/,
  min: 1,
  rule: 'a whole number from 1',
}
const SECONDS: NumberRule & { fallback: number } = {
  fallback: 4,
  pattern: /^\d{1,3}(?:\.\d{1,3})?$/,
  min: 0.05,
  rule: 'a number of seconds from 0.05',
}
const OUT = fileURLToPath(new URL('../../../../docs/benchmarks/profiles', import.meta.url))

const usage = `pnpm run profile [path …] [options]

Paths: ${pathNames.join(', ')}. Default: all of them.
Writes a flame graph of the service on each path, and a page with the largest costs of each.

  --seconds N  how long each path is profiled, after a warm-up as long (${SECONDS.fallback})
  --users N    clients of the API (${USERS.fallback})
  --out DIR    where the files are written (docs/benchmarks/profiles)
  --help       print this text
`

const parse = (args: readonly string[]): ProfileOptions | null => {
  const line = parseCommandLine(args, { values: ['seconds', 'users', 'out'], flags: [], allowPositionals: true })
  if (line.flags.has('help')) return null
  const unknown = line.positionals.find(name => !pathNames.includes(name))
  if (unknown !== undefined) throw new UsageError(`unknown path "${unknown}"; the paths are ${pathNames.join(', ')}`)
  return {
    paths: line.positionals.length > 0 ? line.positionals : pathNames,
    seconds: readNumber(line, 'seconds', SECONDS),
    users: readNumber(line, 'users', USERS),
    out: line.values.out ?? OUT,
  }
}

await runCommand({
  name: 'profile',
  usage,
  parse,
  async run(options, cleanup) {
    const environment = await Environment.open(cleanup, usesPostgres(options))
    await profile(environment, await describeMachine(environment.postgresVersion, environment.folder), options)
    return 0
  },
})
