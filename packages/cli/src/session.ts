import type { Host } from './host.ts'
import type { Output, OutputFormat } from './output.ts'
import type { Progress } from './progress.ts'
import { promptConfirmation, promptSecret } from './prompt.ts'

/** The flags that every command has. */
export interface GlobalFlags {
  readonly context?: string
  readonly output?: OutputFormat
  readonly timeout?: string
  readonly verbose?: boolean
  readonly quiet?: boolean
  readonly color?: boolean
}

/** What a command works with. */
export interface Session {
  readonly host: Host
  readonly globals: GlobalFlags
  readonly output: Output
  readonly progress: Progress
  /** Continues if the user confirms, at the prompt or with `--yes`. */
  confirm(question: string, expected: string, isConfirmed: boolean): Promise<void>
  /** Asks for a secret. Without a terminal, the error says what to do otherwise. */
  askSecret(label: string, otherwise: string): Promise<string>
}

export interface SessionParts {
  readonly host: Host
  readonly globals: GlobalFlags
  readonly output: Output
  readonly progress: Progress
}

export const createSession = ({ host, globals, output, progress }: SessionParts): Session => {
  const prompt = { stdin: host.stdin, stderr: host.stderr, signal: host.interrupted }
  return {
    host,
    globals,
    output,
    progress,
    async confirm(question, expected, isConfirmed) {
      if (!isConfirmed) await promptConfirmation(prompt, question, expected)
    },
    askSecret: (label, otherwise) => promptSecret(prompt, label, otherwise),
  }
}
