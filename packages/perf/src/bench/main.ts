import { availableParallelism } from 'node:os'
import { print, progress, runCommand } from '../shared/cli.ts'
import { describeMachine } from '../shared/machine.ts'
import { checkCheckout, comparableNames, comparableSections } from './against.ts'
import { Environment } from './environment/environment.ts'
import { limitCores } from './environment/limited-cores.ts'
import { type BenchOptions, benchUsage, parseBenchOptions } from './options.ts'
import { peerNames, peerSections } from './peer.ts'
import { type BenchReport, headText, isValid, sectionText, toBenchJson } from './report.ts'
import { sections } from './sections.ts'

/** Runs the sections and prints the result of each as soon as it is known. */
const bench = async (options: BenchOptions, cleanup: AsyncDisposableStack): Promise<number> => {
  if (options.against !== null) await checkCheckout(options.against)
  const available = options.peer ? peerSections : options.against === null ? sections : comparableSections
  const chosen = available.filter(({ name }) => options.sections.includes(name))
  // Before anything is started, so that everything is limited.
  if (options.cores < 1) cleanup.defer(limitCores(options.cores, availableParallelism()))
  const withPostgres = chosen.some(({ needs }) => needs === 'postgres')
  if (withPostgres) progress('starting Postgres')
  const environment = await Environment.open(cleanup, withPostgres, options.postgres)
  const machine = await describeMachine(environment.postgresVersion, environment.folder)
  if (!options.json) print(headText(machine, options))
  const printed = new Set<string>()
  const done: BenchReport['sections'][number][] = []
  for (const section of chosen) {
    const result = await section.run({ environment, options })
    done.push({ name: section.name, title: section.title, result })
    if (!options.json) print(`\n${sectionText(section, result, printed)}`)
  }
  const report: BenchReport = { machine, options, sections: done }
  if (options.json) print(toBenchJson(report))
  return isValid(report) ? 0 : 1
}

const known = { all: sections.map(({ name }) => name), checkout: comparableNames, peer: peerNames }
await runCommand({
  name: 'bench',
  usage: benchUsage(known),
  parse: args => parseBenchOptions(args, known),
  run: bench,
})
