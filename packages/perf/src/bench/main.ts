import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { print, progress, runCommand, UsageError } from '../shared/cli.ts'
import { describeMachine, machineText } from '../shared/machine.ts'
import { Environment } from './environment/environment.ts'
import { type BenchOptions, benchUsage, parseBenchOptions } from './options.ts'
import { type Section, sectionText } from './section.ts'
import { apiSections } from './sections/api.ts'
import { leaseCostSection } from './sections/lease-cost.ts'
import { leaseSections } from './sections/leases.ts'
import { listSection } from './sections/list.ts'
import { startSection } from './sections/start.ts'

/** In the order in which they run. */
const sections: readonly Section[] = [...apiSections, listSection, startSection, ...leaseSections, leaseCostSection]

const ENTRIES = ['apps/allocation-api/src/main.ts', 'apps/lease-witness/local/main.ts']

/** Throws UsageError unless the folder has the entry points of this project. */
const checkCheckout = async (folder: string): Promise<void> => {
  for (const entry of ENTRIES) {
    const found = await stat(join(folder, entry)).catch(() => undefined)
    if (!found?.isFile())
      throw new UsageError(`--against ${folder}: ${entry} does not exist; name a checkout of this project`)
  }
}

/** Runs the sections and prints the result of each as soon as it is known. */
const bench = async (options: BenchOptions, cleanup: AsyncDisposableStack): Promise<number> => {
  const { against, rounds, seconds, warmUpSeconds } = options
  if (against !== null) await checkCheckout(against)
  progress('starting Postgres')
  const environment = await Environment.open(cleanup, options.postgres)
  const machine = machineText(await describeMachine(environment.postgresVersion, environment.folder))
  const method = `${rounds} interleaved rounds of ${seconds} s for each target, after a warm-up of ${warmUpSeconds} s under each load`
  print(`\`\`\`\n${machine}\nmethod    ${method}\n\`\`\``)
  const notes = new Set<string>()
  let isValid = true
  for (const section of sections.filter(({ name }) => options.sections.includes(name))) {
    const result = await section.run({ environment, options })
    isValid &&= result.errors.length === 0
    print(`\n${sectionText(section, result, notes.has(section.note))}`)
    notes.add(section.note)
  }
  return isValid ? 0 : 1
}

await runCommand({
  name: 'bench',
  usage: benchUsage(sections),
  parse: args => parseBenchOptions(args, sections),
  run: bench,
})
