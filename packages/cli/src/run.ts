import { CommanderError } from 'commander'
import { type CommandSpec, createProgram, type Input } from './command.ts'
import { commands } from './commands/index.ts'
import { COMPLETE_ARGUMENT, complete, type SuggestValues, toCompletionLines } from './completion.ts'
import { readContexts, toContextsPath } from './contexts.ts'
import { EXIT, InterruptedError, UsageError } from './exit-codes.ts'
import { describeFailure } from './failures.ts'
import type { Host } from './host.ts'
import { createOutput } from './output.ts'
import { createProgress } from './progress.ts'
import { createSession, type GlobalFlags } from './session.ts'
import { acceptsColour, createPaint, toPlainLine } from './text.ts'
import { parseDuration } from './values.ts'

export const VERSION = '1.0.0'

const DEFAULT_WIDTH = 80
export const TIMEOUT_LIMITS = { min: 100, max: 3_600_000 } as const

/** Values for the completion, which must neither fail nor wait for a service. */
const createSuggest =
  (host: Host): SuggestValues =>
  async suggestion => {
    if (suggestion !== 'contexts') return []
    const { contexts } = await readContexts(toContextsPath(host.env)).catch(() => ({ contexts: {} }))
    return Object.keys(contexts).sort()
  }

/** The context of a hint, which must not fail. */
const findContextName = async (host: Host, requested: string | undefined): Promise<string | undefined> => {
  const { current } = await readContexts(toContextsPath(host.env)).catch(() => ({ current: undefined }))
  return requested ?? current
}

interface Invocation extends Input {
  readonly globals: GlobalFlags
}

const runCommand = async (host: Host, spec: CommandSpec, { args, flags, globals }: Invocation): Promise<number> => {
  const { timeout } = globals
  const timeoutMs = timeout === undefined ? undefined : parseDuration(timeout, '--timeout', TIMEOUT_LIMITS)
  const isQuiet = globals.quiet === true
  const isTerminal = (stream: Host['stdout']) => stream.isTTY === true
  const isColoured = globals.color !== false
  const note = (text: string) => {
    if (!isQuiet) host.stderr.write(`${text}\n`)
  }
  const output = createOutput({
    format: globals.output ?? 'table',
    paint: createPaint(isColoured && acceptsColour({ isTerminal: isTerminal(host.stdout), env: host.env })),
    width: isTerminal(host.stdout) ? (host.stdout.columns ?? DEFAULT_WIDTH) : null,
    stdout: host.stdout,
    note,
  })
  const progress = createProgress({ stderr: host.stderr, isTerminal: isTerminal(host.stderr), isQuiet })
  const session = createSession({ host, globals, output, progress, timeoutMs })
  try {
    const exitCode = (await spec.run(session, { args, flags })) ?? EXIT.done
    if (exitCode === EXIT.done && host.interrupted.aborted) throw new InterruptedError(String(host.interrupted.reason))
    return exitCode
  } finally {
    progress.stop()
  }
}

/** Prints an error of commander in the form of the others: what is wrong, then where the help is. */
const describeUsage = (error: CommanderError, path: string): string =>
  `${toPlainLine(error.message)}\nRun "${path} --help" for the usage.\n`

/** The words of the command line that are commands. */
const toCommandPath = (args: readonly string[], specs = commands): string => {
  const spec = specs.find(({ name }) => name === args[0])
  if (!spec) return 'poolctl'
  const rest = 'commands' in spec ? toCommandPath(args.slice(1), spec.commands).slice('poolctl'.length) : ''
  return `poolctl ${spec.name}${rest}`
}

/** Runs poolctl. Resolves with the exit code; never rejects. */
export const runCli = async (args: readonly string[], host: Host): Promise<number> => {
  let exitCode: number = EXIT.done
  let requested: string | undefined
  let messages = ''
  const program = createProgram({
    specs: commands,
    version: VERSION,
    writeOut: text => host.stdout.write(text),
    // The messages of commander are printed below.
    writeErr: text => {
      messages += text
    },
    helpWidth: host.stdout.isTTY ? host.stdout.columns : DEFAULT_WIDTH,
    execute: async (spec, invocation) => {
      requested = invocation.globals.context
      exitCode = await runCommand(host, spec, invocation)
    },
  })
  try {
    if (args[0] === COMPLETE_ARGUMENT) {
      host.stdout.write(toCompletionLines(await complete(program, args.slice(1), createSuggest(host))))
      return EXIT.done
    }
    await program.parseAsync([...args], { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT.done
      // Without a command, the message is the help.
      const path = toCommandPath(args.filter(arg => !arg.startsWith('-')))
      host.stderr.write(error.code === 'commander.help' ? messages : describeUsage(error, path))
      return EXIT.usage
    }
    const failure = describeFailure(error, host.interrupted, await findContextName(host, requested))
    host.stderr.write(failure.text)
    if (error instanceof UsageError) host.stderr.write(`Run "${toCommandPath(args)} --help" for the usage.\n`)
    return failure.exitCode
  }
}
