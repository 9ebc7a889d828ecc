import { spawn, spawnSync } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'
import { ENTRY } from './cli.ts'

/** `script` of util-linux runs a command in a pseudo-terminal. That of BSD and macOS has other arguments. */
const isMissing = !spawnSync('script', ['--version'], { encoding: 'utf8' }).stdout?.includes('util-linux')
export const missingTerminal = isMissing ? 'poolctl in a terminal: apt-get install util-linux (script)' : undefined

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

export interface TerminalSession {
  /** Everything on the screen so far, with its escape sequences. */
  readonly output: () => string
  /** Resolves when the text is on the screen. Rejects with the screen if poolctl ends before. */
  waitFor(text: string): Promise<void>
  /** Types on the keyboard; `\u0003` is Ctrl-C. */
  type(keys: string): void
  readonly exitCode: Promise<number | null>
}

/** Runs poolctl in a terminal. `before` are shell commands that run in it first. */
export const openTerminal = (args: readonly string[], env: NodeJS.ProcessEnv, columns = 80): TerminalSession => {
  // Without the echo of `script` itself: its own standard input is a pipe.
  const command = `stty cols ${columns} rows 40; exec ${[process.execPath, ENTRY, ...args].map(quote).join(' ')}`
  const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let output = ''
  const waiting = new Set<() => void>()
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
    for (const check of waiting) check()
  })
  child.stdin.on('error', () => {})
  const exitCode = new Promise<number | null>(resolve => child.once('close', resolve))
  return {
    output: () => output,
    async waitFor(text) {
      await new Promise<void>((resolve, reject) => {
        const check = () => {
          if (!stripVTControlCharacters(output).includes(text)) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        void exitCode.then(code =>
          reject(new Error(`poolctl ended with ${code} before it printed ${text}:\n${output}`)),
        )
        check()
      })
    },
    type: keys => void child.stdin.write(keys),
    exitCode,
  }
}
