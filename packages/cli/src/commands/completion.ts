import type { CommandSpec } from '../command.ts'
import { type Shell, shells, toCompletionScript } from '../completion.ts'
import { UsageError } from '../exit-codes.ts'

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
    return Promise.resolve(undefined)
  },
}
