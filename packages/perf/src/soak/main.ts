import { print, refuse, runToEnd } from '../bench/command.ts'
import { describeMachine } from '../bench/machine.ts'
import { type Options, parseArguments, usage } from './arguments.ts'
import { createSecretWatch } from './environment/secrets.ts'
import { openStage } from './environment/stage.ts'
import { createVerdicts } from './invariants.ts'
import { isGood } from './outcome.ts'
import { reportJson, reportText } from './report/text.ts'
import { soak } from './soak.ts'

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

const parsed = parseArguments(process.argv.slice(2))
if (parsed.kind === 'help') print(usage)
else if (parsed.kind === 'fault') refuse('soak', parsed.detail)
else await runToEnd('soak', cleanup => run(parsed.options, cleanup))
