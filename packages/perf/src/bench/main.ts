import { print, progress, runCommand } from '../shared/cli.ts'
import { describeMachine } from '../shared/machine.ts'
import { checkCheckout, comparableNames, comparableSections } from './against.ts'
import { Environment } from './environment/environment.ts'
import { type BenchOptions, benchUsage, parseBenchOptions } from './options.ts'
import { type BenchReport, headText, isValid, sectionText, toBenchJson } from './report.ts'
import { sections } from './sections.ts'

/** Runs the sections and prints the result of each as soon as it is known. */
const bench = async (options: BenchOptions, cleanup: AsyncDisposableStack): Promise<number> => {
  if (options.against !== null) await checkCheckout(options.against)
  const available = options.against === null ? sections : comparableSections
  const chosen = available.filter(({ name }) => options.sections.includes(name))
  const withPostgres = chosen.some(({ needs }) => needs === 'postgres')
  if (withPostgres) progress('starting Postgres')
  const environment = await Environment.open(cleanup, withPostgres)
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

const names = sections.map(({ name }) => name)
await runCommand({
  name: 'bench',
  usage: benchUsage(names, comparableNames),
  parse: args => parseBenchOptions(args, names, comparableNames),
  run: bench,
})
