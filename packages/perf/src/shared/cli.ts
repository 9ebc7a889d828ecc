import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'

const EXIT_INTERRUPTED = 130
const EXIT_USAGE = 2
const EXIT_GRACE_MS = 1_000

export const print = (text: string): void => void process.stdout.write(`${text}\n`)

/** A line of progress. It goes to standard error: standard output may be JSON on its way to a file. */
export const progress = (line: string): void => void process.stderr.write(`# ${line}\n`)

/** A command line that is invalid. The message names the option and its rule. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export interface CommandLine {
  /** The text of each option with a value; the last one wins. */
  readonly values: Readonly<Record<string, string | undefined>>
  readonly flags: ReadonlySet<string>
  readonly positionals: readonly string[]
}

export interface OptionNames {
  readonly values: readonly string[]
  readonly flags: readonly string[]
  readonly allowPositionals?: boolean
}

/** Parses `--name value`, `--name=value` and flags. Throws UsageError for an unknown option. */
export const parseCommandLine = (args: readonly string[], names: OptionNames): CommandLine => {
  const options: ParseArgsOptionsConfig = {
    help: { type: 'boolean', short: 'h' },
    ...Object.fromEntries(names.values.map(name => [name, { type: 'string' }])),
    ...Object.fromEntries(names.flags.map(name => [name, { type: 'boolean' }])),
  }
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options,
      allowPositionals: names.allowPositionals ?? false,
    })
    const entries = Object.entries(values)
    return {
      values: Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string')),
      flags: new Set(entries.filter(([, value]) => value === true).map(([name]) => name)),
      positionals,
    }
  } catch (error) {
    const [sentence = ''] = (error instanceof Error ? error.message : String(error)).split(/\.(?: |\n|$)/)
    throw new UsageError(sentence)
  }
}

export interface NumberRule {
  readonly fallback: number
  readonly pattern: RegExp
  readonly min: number
  /** Completes "--name must be …". */
  readonly rule: string
}

export const readNumber = ({ values }: CommandLine, name: string, { fallback, pattern, min, rule }: NumberRule) => {
  const text = values[name]
  if (text === undefined) return fallback
  if (!pattern.test(text) || Number(text) < min) throw new UsageError(`--${name} must be ${rule}`)
  return Number(text)
}

const reportUsage = (name: string, { message }: UsageError): number => {
  process.stderr.write(`${name}: ${message}\n`)
  return EXIT_USAGE
}

/**
 * Runs a command that starts processes, and exits with its code: 1 if it throws, 130 if it is interrupted. Whatever ends
 * the run, everything deferred to `cleanup` is stopped first.
 */
const runToExit = async (name: string, run: (cleanup: AsyncDisposableStack) => Promise<number>): Promise<void> => {
  const toCode = async (): Promise<number> => {
    // Before anything is started: a signal without a listener would end this process without cleanup.
    const { promise: interrupted, resolve } = Promise.withResolvers<number>()
    let isInterrupted = false
    const interrupt = () => {
      isInterrupted = true
      resolve(EXIT_INTERRUPTED)
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)
    await using cleanup = new AsyncDisposableStack()
    const toFailure = (error: unknown) => {
      // The cleanup has stopped the servers that the run still calls.
      if (isInterrupted) return EXIT_INTERRUPTED
      if (error instanceof UsageError) return reportUsage(name, error)
      process.stderr.write(`${name}: ${error instanceof Error ? error.stack : error}\n`)
      return 1
    }
    return await Promise.race([run(cleanup).catch(toFailure), interrupted])
  }
  process.exitCode = await toCode()
  // An interrupted run may still have timers and connections. Otherwise the process ends without process.exit, which can hang
  // (https://github.com/nodejs/node/issues/54918).
  setTimeout(() => process.stdout.write('', () => process.exit()), EXIT_GRACE_MS).unref()
}

export interface Command<Options> {
  readonly name: string
  readonly usage: string
  /** Null: `--help`. Throws UsageError. */
  readonly parse: (args: readonly string[]) => Options | null
  readonly run: (options: Options, cleanup: AsyncDisposableStack) => Promise<number>
}

export const runCommand = async <Options>({ name, usage, parse, run }: Command<Options>): Promise<void> => {
  try {
    const options = parse(process.argv.slice(2))
    if (options === null) print(usage)
    else await runToExit(name, cleanup => run(options, cleanup))
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.exitCode = reportUsage(name, error)
  }
}
