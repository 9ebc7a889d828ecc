import { Argument, Command, Option } from 'commander'
import { EXIT } from './exit-codes.ts'
import { outputFormats } from './output.ts'
import type { GlobalFlags, Session } from './session.ts'

/** What completion suggests for the value of an argument or a flag, in addition to its choices. */
export type Suggestion = 'contexts' | 'pools' | 'files'

export interface ArgumentSpec {
  /** As in the usage line: `NAME`, `[POOL]` or `SLOT...`. */
  readonly name: string
  readonly description: string
  readonly suggest?: Suggestion
}

export interface FlagSpec {
  /** As commander writes it: `-f, --follow` or `--address <ip>`. */
  readonly flags: string
  readonly description: string
  readonly choices?: readonly string[]
  readonly isRequired?: boolean
  readonly isRepeatable?: boolean
  readonly suggest?: Suggestion
}

/** Arguments by position; those of a list are in one array. */
export type Arguments = readonly (string | readonly string[] | undefined)[]
export type Flags = Readonly<Record<string, unknown>>

/** What the user has given to a command. */
export interface Input {
  readonly args: Arguments
  readonly flags: Flags
}

/** A command, from which commander, the completion and the tests of the interface are built. */
export interface CommandSpec {
  readonly name: string
  readonly summary: string
  /** What the summary leaves out. */
  readonly description?: string
  readonly arguments?: readonly ArgumentSpec[]
  readonly flags?: readonly FlagSpec[]
  /** Lines after `poolctl`. */
  readonly examples: readonly string[]
  /** The ids of the operations of the contract that the command calls. */
  readonly operations?: readonly string[]
  /** Exit codes with a meaning of their own. */
  readonly exitCodes?: readonly string[]
  /** Resolves with the exit code if it is not 0. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most commands have nothing to resolve with
  readonly run: (session: Session, input: Input) => Promise<number | void>
}

/** Commands with a common first word. */
export interface GroupSpec {
  readonly name: string
  readonly summary: string
  readonly commands: readonly (CommandSpec | GroupSpec)[]
}

export const isGroup = (spec: CommandSpec | GroupSpec): spec is GroupSpec => 'commands' in spec

const suggestions = new WeakMap<Argument | Option, Suggestion>()
export const getSuggestion = (source: Argument | Option): Suggestion | undefined => suggestions.get(source)

export const globalOptions = (): readonly Option[] => {
  const context = new Option('--context <name>', 'use this context instead of the current one')
  suggestions.set(context, 'contexts')
  return [
    context,
    new Option('-o, --output <format>', 'how to print the result').choices(outputFormats),
    new Option('--timeout <duration>', 'limit of one request with its retries, such as 30s'),
    new Option('-q, --quiet', 'print no progress and no remarks'),
    new Option('-v, --verbose', 'print each request on standard error'),
    new Option('--no-color', 'print without colour; NO_COLOR=1 does the same'),
  ]
}

const toArgument = ({ name, description, suggest }: ArgumentSpec): Argument => {
  const isOptional = name.startsWith('[')
  const argument = new Argument(isOptional ? name : `<${name}>`, description)
  if (suggest) suggestions.set(argument, suggest)
  return argument
}

const toOption = ({ flags, description, choices, isRepeatable, suggest }: FlagSpec): Option => {
  const option = new Option(flags, description)
  if (choices) option.choices(choices)
  if (isRepeatable) option.argParser((value: string, former: readonly string[] = []) => [...former, value])
  if (suggest) suggestions.set(option, suggest)
  return option
}

export type Execute = (spec: CommandSpec, input: Input & { readonly globals: GlobalFlags }) => Promise<void>

const toExamples = (examples: readonly string[], exitCodes: readonly string[] = []): string => {
  const list = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? '' : `\n${title}:\n${lines.map(line => `  ${line}`).join('\n')}\n`
  return (
    list(
      'Examples',
      examples.map(example => `poolctl ${example}`),
    ) + list('Exit codes', exitCodes)
  )
}

const configure = (command: Command): Command =>
  command
    .helpOption('-h, --help', 'show this help')
    .helpCommand(false)
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .showSuggestionAfterError(true)
    .exitOverride()

const addCommand = (parent: Command, spec: CommandSpec, execute: Execute): void => {
  const command = configure(parent.command(spec.name))
    .summary(spec.summary)
    .description(spec.description === undefined ? `${spec.summary}.` : `${spec.summary}.\n\n${spec.description}`)
    .addHelpText('after', toExamples(spec.examples, spec.exitCodes))
  for (const argument of spec.arguments ?? []) command.addArgument(toArgument(argument))
  const options = (spec.flags ?? []).map(flag => ({ flag, option: toOption(flag) }))
  for (const { option } of options) command.addOption(option)
  command.action(async (...parameters: unknown[]) => {
    // Here, since commander looks for missing options before it names the one that is misspelt.
    const missing = options.find(({ flag, option }) => flag.isRequired && !(option.attributeName() in command.opts()))
    if (missing) command.error(`error: required option '${missing.flag.flags}' not specified`)
    const count = command.registeredArguments.length
    await execute(spec, {
      args: parameters.slice(0, count) as Arguments,
      flags: command.opts(),
      globals: command.optsWithGlobals(),
    })
  })
}

const addGroup = (parent: Command, spec: GroupSpec, execute: Execute): void => {
  const group = configure(parent.command(spec.name)).summary(spec.summary).description(`${spec.summary}.`)
  for (const child of spec.commands) {
    if (isGroup(child)) addGroup(group, child, execute)
    else addCommand(group, child, execute)
  }
}

export interface ProgramOptions {
  readonly specs: readonly (CommandSpec | GroupSpec)[]
  readonly version: string
  readonly execute: Execute
  readonly writeOut: (text: string) => void
  readonly writeErr: (text: string) => void
  readonly helpWidth: number | undefined
}

/** Builds the command line. Parsing throws a CommanderError for invalid usage, `--help` and `--version`. */
export const createProgram = ({ specs, version, execute, writeOut, writeErr, helpWidth }: ProgramOptions): Command => {
  const program = configure(new Command('poolctl'))
    .description('Operates the allocation API and the lease witness.')
    .version(version, '--version', 'print the version')
    .configureOutput({
      writeOut,
      writeErr,
      ...(helpWidth === undefined ? {} : { getOutHelpWidth: () => helpWidth, getErrHelpWidth: () => helpWidth }),
    })
  for (const option of globalOptions()) program.addOption(option)
  for (const spec of specs) {
    if (isGroup(spec)) addGroup(program, spec, execute)
    else addCommand(program, spec, execute)
  }
  program.addHelpText(
    'after',
    `
Exit codes:
  ${EXIT.done}    done
  ${EXIT.negative}    the answer is negative: a name is not free, keys are rejected, a zone differs, a deployment failed
  ${EXIT.usage}    invalid command line, context or input file; nothing was sent
  ${EXIT.rejected}    the service rejected the request
  ${EXIT.unavailable}    the service did not respond in time, or cannot serve the request at the moment
  ${EXIT.local}    a file, a token command or the terminal failed
  130  interrupted by Ctrl-C

Begin with: poolctl contexts set local --api http://127.0.0.1:8081 --api-token-file FILE`,
  )
  return program
}
