import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { until } from '@pool/test-kit/poll.ts'

export const EXAMPLES = resolve(import.meta.dirname, '../../../examples')

export interface Command {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
}

/** A running example. Disposal kills it. */
export class Program implements AsyncDisposable {
  readonly child: ChildProcess
  /** The exit code; null after a signal. */
  readonly exited: Promise<number | null>
  /** Its output so far, both streams. */
  readonly lines: string[] = []
  hasExited = false

  constructor({ command, args, env = {}, cwd }: Command) {
    this.child = spawn(command, args, {
      cwd,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.child.stdout, this.child.stderr]) {
      if (stream) createInterface(stream).on('line', line => this.lines.push(line))
    }
    this.child.on('error', error => this.lines.push(String(error)))
    this.exited = new Promise(done => this.child.on('close', done))
    void this.exited.then(() => {
      this.hasExited = true
    })
  }

  get output(): string {
    return this.lines.join('\n')
  }

  /** The JSON lines of the output. */
  // biome-ignore lint/suspicious/noExplicitAny: each example logs its own fields.
  readLog(): any[] {
    return this.lines.filter(line => line.startsWith('{')).map(line => JSON.parse(line))
  }

  /** The first JSON line with this message. */
  untilLogged(msg: string): Promise<Record<string, unknown>> {
    return until(`a line with ${msg}`, () => {
      const line = this.readLog().find(line => line.msg === msg)
      if (!line && this.hasExited) throw new Error(`exited without ${msg}:\n${this.output}`)
      return line
    })
  }

  /** Sends SIGTERM and waits for the end. Throws if the exit code is not 0. */
  async stop(): Promise<void> {
    this.child.kill('SIGTERM')
    const code = await this.exited
    if (code !== 0) throw new Error(`exit code ${code}:\n${this.output}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL')
    if (this.child.pid !== undefined) await this.exited
  }
}

/** Runs a TypeScript example with this version of Node. */
export const runTypeScript = (entry: string, env: NodeJS.ProcessEnv, ...args: readonly string[]): Command => ({
  command: process.execPath,
  args: [resolve(EXAMPLES, entry), ...args],
  env,
})
