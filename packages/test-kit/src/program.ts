import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { until } from './poll.ts'

export interface Command {
  /** A path, or a name that is looked up in PATH. */
  readonly command: string
  readonly args: readonly string[]
  /** In addition to PATH. */
  readonly env?: NodeJS.ProcessEnv
  readonly cwd?: string
}

/** A running program that is not a service of this repository. Disposal kills it. */
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
  // biome-ignore lint/suspicious/noExplicitAny: each program logs its own fields.
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

  /** Its output when it has ended. Throws if the exit code is not 0, with the last `maxLength` characters of the output. */
  async untilSucceeded(maxLength = 4_000): Promise<string> {
    const code = await this.exited
    const { spawnfile, spawnargs } = this.child
    if (code !== 0)
      throw new Error(`${spawnfile} ${spawnargs[1] ?? ''} exited with code ${code}:\n${this.output.slice(-maxLength)}`)
    return this.output
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
