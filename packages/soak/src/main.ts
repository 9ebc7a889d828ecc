import { describeMachine } from '@pool/bench/src/machine.ts'
import { type Options, parseArguments, usage } from './arguments.ts'
import { isGood } from './outcome.ts'
import { reportJson, reportText } from './report/text.ts'
import { soak } from './soak.ts'
import { createSecretWatch } from './stage/secrets.ts'
import { openStage } from './stage/stage.ts'
import { createVerdicts } from './verdicts.ts'

const INTERRUPTED = 130

const print = (text: string) => process.stdout.write(`${text}\n`)
// Not into the report: that may be JSON on its way to a file.
const say = (line: string) => process.stderr.write(`# ${line}\n`)

const run = async (options: Options, cleanup: AsyncDisposableStack): Promise<number> => {
  const verdicts = createVerdicts(line => process.stderr.write(`${line}\n`))
  const watch = createSecretWatch(fault => verdicts.add('no secret in a log', 0, [fault]))
  const odd = (what: string) => verdicts.add('answers and processes as expected', 0, [what])
  say(`starting everything; seed ${options.seed}`)
  const stage = await openStage(cleanup, watch, odd)
  const machine = await describeMachine(stage.version, stage.folder)
  const outcome = await soak({ options, stage, verdicts, watch, say })
  print(options.json ? reportJson(machine, outcome) : reportText(machine, outcome))
  return isGood(outcome) ? 0 : 1
}

const interrupted = (): Promise<number> => {
  const { promise, resolve } = Promise.withResolvers<number>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(INTERRUPTED))
  return promise
}

/** The end of the run, however it comes, is one place: what has been started is stopped before this returns. */
const runToEnd = async (options: Options): Promise<number> => {
  // First of all: a signal that nobody listens to ends us with nothing cleaned up.
  const interruption = interrupted()
  await using cleanup = new AsyncDisposableStack()
  const failed = (error: unknown) => {
    process.stderr.write(`soak: ${error instanceof Error ? error.stack : error}\n`)
    return 1
  }
  return await Promise.race([run(options, cleanup).catch(failed), interruption])
}

const parsed = parseArguments(process.argv.slice(2))
if (parsed.kind === 'help') print(usage)
else if (parsed.kind === 'fault') {
  process.stderr.write(`soak: ${parsed.detail}\n`)
  process.exitCode = 2
} else {
  const code = await runToEnd(parsed.options)
  // Whoever was interrupted may still have timers and connections of clients that nobody waits for.
  process.stdout.write('', () => process.exit(code))
}
