import { randomBytes } from 'node:crypto'
import { type Options, parseArguments, usage } from './arguments.ts'
import { fuzz } from './fuzz.ts'
import { isClean, reportJson, reportText } from './report/report.ts'

const INTERRUPTED = 130

const print = (text: string) => process.stdout.write(`${text}\n`)
// Not into the report: that may be JSON on its way to a file.
const say = (line: string) => process.stderr.write(`# ${(performance.now() / 1_000).toFixed(1)} s: ${line}\n`)

const interrupted = (): Promise<number> => {
  const { promise, resolve } = Promise.withResolvers<number>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(INTERRUPTED))
  return promise
}

const runAndPrint = async (options: Options, cleanup: AsyncDisposableStack): Promise<number> => {
  const report = await fuzz(options, cleanup, say)
  print(options.json ? reportJson(report) : reportText(report))
  return isClean(report) ? 0 : 1
}

/** The end of the run, however it comes, is one place: what has been started is stopped before this returns. */
const runToEnd = async (options: Options): Promise<number> => {
  // First of all: a signal that nobody listens to ends us with nothing cleaned up.
  const interruption = interrupted()
  await using cleanup = new AsyncDisposableStack()
  const failed = (error: unknown) => {
    process.stderr.write(`fuzz: ${error instanceof Error ? error.stack : error}\n`)
    return 1
  }
  return await Promise.race([runAndPrint(options, cleanup).catch(failed), interruption])
}

const parsed = parseArguments(process.argv.slice(2), randomBytes(4).toString('hex'))
if (parsed.kind === 'help') print(usage)
else if (parsed.kind === 'fault') {
  process.stderr.write(`fuzz: ${parsed.detail}\n`)
  process.exitCode = 2
} else {
  const code = await runToEnd(parsed.options)
  // Whoever was interrupted may still have timers and connections that nobody waits for.
  process.stdout.write('', () => process.exit(code))
}
