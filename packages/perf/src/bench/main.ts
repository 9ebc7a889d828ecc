import { type Options, parseArguments, usage } from './arguments.ts'
import { print, refuse, runToEnd } from './command.ts'
import { openStage } from './environment/stage.ts'
import { describeMachine } from './machine.ts'
import { readDocuments } from './page/documents.ts'
import { readRuns, writePage } from './page/write.ts'
import { headText, isValid, type Report, reportJson, sectionText } from './report/report.ts'
import type { SectionResult } from './section.ts'
import { sections } from './sections.ts'

// Not into the report: that may be JSON on its way to a file.
const say = (line: string) => process.stderr.write(`# ${line}\n`)

/** Runs the sections on a stage of their own; each is printed as soon as it is there. */
const bench = async (options: Options, cleanup: AsyncDisposableStack): Promise<number> => {
  const chosen = sections.filter(({ name }) => options.sections.includes(name))
  const withPostgres = chosen.some(({ on }) => on === 'postgres')
  if (withPostgres) say('starting Postgres')
  const stage = await openStage(cleanup, { withPostgres })
  const machine = await describeMachine(stage.cluster?.version ?? null, stage.folder)
  if (!options.json) print(headText(machine, options))
  const shown = new Set<string>()
  const done: { section: (typeof sections)[number]; result: SectionResult }[] = []
  for (const section of chosen) {
    const result = await section.run({ stage, options, say })
    done.push({ section, result })
    if (!options.json) print(`\n${sectionText(section, result, shown)}`)
  }
  const report: Report = { machine, options, sections: done }
  if (options.json) print(reportJson(report))
  if (options.page !== null) {
    const runs = readDocuments(reportJson(report))
    for (const file of await writePage(options.page, runs ?? [])) say(`written: ${file}`)
  }
  return isValid(report) ? 0 : 1
}

/** The page of earlier runs. */
const pageOf = async (folder: string, files: readonly string[]): Promise<void> => {
  const read = await readRuns(files)
  if (read.kind === 'fault') {
    refuse('bench', read.detail)
    return
  }
  for (const file of await writePage(folder, read.runs)) say(`written: ${file}`)
}

const names = sections.map(({ name }) => name)
const parsed = parseArguments(process.argv.slice(2), names)
if (parsed.kind === 'help') print(usage(names))
else if (parsed.kind === 'fault') refuse('bench', parsed.detail)
else if (parsed.options.page !== null && parsed.options.from.length > 0) {
  await pageOf(parsed.options.page, parsed.options.from)
} else await runToEnd('bench', cleanup => bench(parsed.options, cleanup))
