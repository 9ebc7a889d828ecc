import { print, progress, runCommand } from '../shared/cli.ts'
import { describeMachine } from '../shared/machine.ts'
import { startSoakEnvironment } from './environment/environment.ts'
import { LogSecretScanner } from './environment/log-secrets.ts'
import { InvariantChecker } from './invariants.ts'
import { parseSoakOptions, type SoakOptions, soakUsage } from './options.ts'
import { hasNoViolations, toSoakJson, toSoakText } from './report.ts'
import { soak } from './soak.ts'

const run = async (options: SoakOptions, cleanup: AsyncDisposableStack): Promise<number> => {
  const invariants = new InvariantChecker(line => process.stderr.write(`${line}\n`))
  const scanner = new LogSecretScanner(finding => invariants.record('no secret in logs', 0, [finding]))
  progress(`starting all services; seed ${options.seed}`)
  const environment = await startSoakEnvironment(cleanup, scanner, invariants)
  const machine = await describeMachine(environment.version, environment.folder)
  const report = await soak({ options, environment, invariants, scanner })
  print(options.json ? toSoakJson(machine, report) : toSoakText(machine, report))
  return hasNoViolations(report) ? 0 : 1
}

await runCommand({ name: 'soak', usage: soakUsage, parse: parseSoakOptions, run })
