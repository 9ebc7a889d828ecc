import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { COMPILE_CACHE } from '@pool/dev/process'
import type { Host } from '../../src/host.ts'
import { runCli } from '../../src/run.ts'

export const ENTRY = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

export interface CliResult {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface CliOptions {
  readonly env?: NodeJS.ProcessEnv
  /** Columns; the output is a terminal. */
  readonly columns?: number
  readonly fetch?: typeof fetch
  readonly interrupted?: AbortSignal
  readonly killed?: AbortSignal
}

const createSink = (columns: number | undefined) => {
  const stream = new PassThrough()
  let text = ''
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  const display = columns === undefined ? stream : Object.assign(stream, { isTTY: true as const, columns })
  return { display, read: () => text }
}

const rejectFetch: typeof fetch = () => Promise.reject(new Error('the test expects no request'))

/** Runs poolctl in this process, without a terminal unless `columns` is given. */
export const runPoolctl = async (args: readonly string[], options: CliOptions = {}): Promise<CliResult> => {
  const stdout = createSink(options.columns)
  const stderr = createSink(options.columns)
  const host: Host = {
    env: options.env ?? {},
    stdin: Object.assign(new PassThrough(), { isTTY: false as const }) as unknown as Host['stdin'],
    stdout: stdout.display,
    stderr: stderr.display,
    entry: ENTRY,
    fetch: options.fetch ?? rejectFetch,
    interrupted: options.interrupted ?? new AbortController().signal,
    killed: options.killed ?? new AbortController().signal,
  }
  const exitCode = await runCli(args, host)
  // What was written is read in the next turn of the event loop.
  await new Promise(resolve => setImmediate(resolve))
  return { exitCode, stdout: stdout.read(), stderr: stderr.read() }
}

/** A folder with the contexts and the tokens of one test, and the environment that names it. */
export const createCliFolder = () => {
  const folder = mkdtempSync(join(tmpdir(), 'poolctl-'))
  return {
    folder,
    config: join(folder, 'contexts.json'),
    env: {
      POOLCTL_CONFIG: join(folder, 'contexts.json'),
      POOLCTL_STATE: join(folder, 'state'),
      HOME: folder,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}
