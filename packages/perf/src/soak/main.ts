import { print, progress, runCommand } from '../shared/cli.ts'
import { describeMachine } from '../shared/machine.ts'
import { createSecretWatch } from './environment/secrets.ts'
import { openEnvironment } from './environment/stage.ts'
import { createInvariantLog } from './invariants.ts'
import { type Options, parseOptions, usage } from './options.ts'
import { isClean } from './outcome.ts'
import { reportJson, reportText } from './report/text.ts'
import { soak } from './soak.ts'

const run = async (options: Options, cleanup: AsyncDisposableStack): Promise<number> => {
  const verdicts = createInvariantLog(line => process.stderr.write(`${line}\n`))
  const watch = createSecretWatch(fault => verdicts.add('no secret in a log', 0, [fault]))
  const reportAnomaly = (what: string) => verdicts.add('answers and processes as expected', 0, [what])
  progress(`starting all services; seed ${options.seed}`)
  const stage = await openEnvironment(cleanup, watch, reportAnomaly)
  const machine = await describeMachine(stage.version, stage.folder)
  const outcome = await soak({ options, stage, verdicts, watch, say: progress })
  print(options.json ? reportJson(machine, outcome) : reportText(machine, outcome))
  return isClean(outcome) ? 0 : 1
}

await runCommand({ name: 'soak', usage, parse: parseOptions, run })
