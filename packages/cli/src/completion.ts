import type { Argument, Command, Option } from 'commander'
import { type CommandSpec, getSuggestion, type Suggestion } from './command.ts'
import { UsageError } from './exit-codes.ts'

const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

/** The hidden command that the scripts call with the words of the line, the last one incomplete. */
export const COMPLETE_ARGUMENT = '__complete'

/** A line of `__complete` that asks the shell to suggest files. */
const FILES_DIRECTIVE = ':files'

const BASH = `# bash completion of poolctl. Load it with: source <(poolctl completion bash)
_poolctl() {
  local line value words=("\${COMP_WORDS[@]:1:COMP_CWORD}") wants_files=
  COMPREPLY=()
  while IFS= read -r line; do
    value=\${line%%$'\\t'*}
    if [ "$value" = ${FILES_DIRECTIVE} ]; then wants_files=1; else COMPREPLY+=("$(printf %q "$value")"); fi
  done < <("\${COMP_WORDS[0]}" ${COMPLETE_ARGUMENT} "\${words[@]}" 2>/dev/null)
  if [ -n "$wants_files" ]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
  fi
}
complete -F _poolctl poolctl
`

const ZSH = `#compdef poolctl
# zsh completion of poolctl. Load it with: source <(poolctl completion zsh)
_poolctl() {
  local line wants_files
  local -a values
  while IFS= read -r line; do
    if [[ $line == ${FILES_DIRECTIVE} ]]; then
      wants_files=1
    else
      values+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
    fi
  done < <("$words[1]" ${COMPLETE_ARGUMENT} "\${(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#values )) && _describe poolctl values
  [[ -n $wants_files ]] && _files
  return 0
}
if [[ $funcstack[1] == _poolctl ]]; then _poolctl "$@"; else compdef _poolctl poolctl; fi
`

const FISH = `# fish completion of poolctl. Load it with: poolctl completion fish | source
function __poolctl_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] ${COMPLETE_ARGUMENT} $words[2..-1] 2>/dev/null)
        if test "$line" = ${FILES_DIRECTIVE}
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c poolctl -f -a '(__poolctl_complete)'
`

const SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH }

const toCompletionScript = (shell: Shell): string => SCRIPTS[shell]

interface Candidate {
  readonly value: string
  readonly description: string
}

/** Values that are not part of the command line's definition. Files are left to the shell. */
export type SuggestValues = (suggestion: Exclude<Suggestion, 'files'>) => Promise<readonly string[]>

interface Position {
  readonly command: Command
  /** Arguments before the incomplete word. */
  readonly argumentCount: number
  /** The flag whose value is incomplete. */
  readonly flag?: Option
  /** After `--`, or after the arguments of a wrapper: the words of another command. */
  readonly isForeign: boolean
}

const listOptions = (command: Command): readonly Option[] => {
  const inherited: Option[] = []
  for (let at = command.parent; at !== null; at = at.parent) inherited.push(...at.options)
  return [...command.options, ...inherited].filter(({ hidden, long }) => !hidden && long !== '--version')
}

const findOption = (command: Command, word: string): Option | undefined =>
  listOptions(command).find(({ long, short }) => word === long || word === short)

/** Where the incomplete word is. */
const findPosition = (program: Command, words: readonly string[]): Position => {
  let command = program
  let argumentCount = 0
  for (let i = 0; i < words.length; i += 1) {
    const word = words[i] ?? ''
    if (word === '--') return { command, argumentCount, isForeign: true }
    if (word.startsWith('-')) {
      const option = findOption(command, word)
      if (!option?.required || word.includes('=')) continue
      if (i === words.length - 1) return { command, argumentCount, flag: option, isForeign: false }
      i += 1
      continue
    }
    const child = argumentCount === 0 ? command.commands.find(candidate => candidate.name() === word) : undefined
    if (child) command = child
    else argumentCount += 1
  }
  return { command, argumentCount, isForeign: false }
}

const suggest = async (source: Argument | Option, values: SuggestValues): Promise<readonly Candidate[]> => {
  const { argChoices } = source
  if (argChoices) return argChoices.map(value => ({ value, description: '' }))
  const suggestion = getSuggestion(source)
  if (suggestion === undefined) return []
  if (suggestion === 'files') return [{ value: FILES_DIRECTIVE, description: '' }]
  return (await values(suggestion)).map(value => ({ value, description: '' }))
}

/** What can follow. `words` are those after `poolctl`; the last one is incomplete and may be empty. */
export const complete = async (
  program: Command,
  words: readonly string[],
  values: SuggestValues,
): Promise<readonly Candidate[]> => {
  const incomplete = words.at(-1) ?? ''
  const { command, argumentCount, flag, isForeign } = findPosition(program, words.slice(0, -1))
  const startsWith = ({ value }: Candidate) => value === FILES_DIRECTIVE || value.startsWith(incomplete)
  if (isForeign) return [{ value: FILES_DIRECTIVE, description: '' }]
  if (flag) return (await suggest(flag, values)).filter(startsWith)
  const assigned = /^(--[\w-]+)=/.exec(incomplete)
  if (assigned) {
    const [prefix = '', name = ''] = assigned
    const option = findOption(command, name)
    const found = option ? await suggest(option, values) : []
    return found.map(({ value, description }) => ({ value: `${prefix}${value}`, description })).filter(startsWith)
  }
  if (incomplete.startsWith('-')) {
    const flags = listOptions(command).map(option => ({
      value: option.long ?? option.short ?? '',
      description: option.description,
    }))
    return [...flags, { value: '--help', description: 'show this help' }].filter(startsWith)
  }
  if (argumentCount === 0 && command.commands.length > 0) {
    return command.commands.map(child => ({ value: child.name(), description: child.summary() })).filter(startsWith)
  }
  const registered = command.registeredArguments
  const argument = registered[argumentCount] ?? (registered.at(-1)?.variadic ? registered.at(-1) : undefined)
  return argument ? (await suggest(argument, values)).filter(startsWith) : []
}

export const toCompletionLines = (candidates: readonly Candidate[]): string =>
  candidates.map(({ value, description }) => `${value}${description === '' ? '' : `\t${description}`}\n`).join('')

export const completionCommand: CommandSpec = {
  name: 'completion',
  summary: 'Print the completion script of a shell',
  description:
    'bash: add "source <(poolctl completion bash)" to ~/.bashrc. zsh: add "source <(poolctl completion zsh)" to ~/.zshrc, after compinit. fish: poolctl completion fish > ~/.config/fish/completions/poolctl.fish',
  arguments: [{ name: 'SHELL', description: `one of ${shells.join(', ')}` }],
  examples: ['completion bash', 'completion fish > ~/.config/fish/completions/poolctl.fish'],
  run({ host }, { args }) {
    const shell = shells.find((known): known is Shell => known === args[0])
    if (!shell) throw new UsageError(`SHELL must be one of ${shells.join(', ')}.`)
    host.stdout.write(toCompletionScript(shell))
    return Promise.resolve()
  },
}
