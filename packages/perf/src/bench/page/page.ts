import { headText } from '../report/report.ts'
import { tableText } from '../report/table.ts'
import { mergeRuns, type RunDocument, type SectionDocument } from './documents.ts'
import { plotSvg } from './plot.ts'
import { plotsOf } from './plots.ts'

export interface PageFile {
  readonly name: string
  readonly text: string
}

const fenced = (text: string): string => `\`\`\`\n${text}\n\`\`\``

const sectionMarkdown = (section: SectionDocument, shown: Set<string>): string => {
  const fresh = section.notes.filter(note => !shown.has(note))
  for (const note of fresh) shown.add(note)
  const invalid =
    section.faults.length > 0
      ? [`**Invalid**: not everything was answered as it should be. ${section.faults.join('; ')}`]
      : []
  return [
    `### ${section.name}: ${section.title}`,
    ...invalid,
    ...plotsOf(section.name, section).map(({ file, plot }) => `![${plot.title}](${file}.svg)`),
    ...fresh,
    ...section.tables.map(table => fenced(tableText(table))),
  ].join('\n\n')
}

const runMarkdown = ({ machine, options, sections }: RunDocument, shown: Set<string>): string =>
  [
    `## ${machine.date.slice(0, 16).replace('T', ' ')} UTC: ${sections.map(({ name }) => name).join(', ')}`,
    fenced(headText(machine, options)),
    ...sections.map(section => sectionMarkdown(section, shown)),
  ].join('\n\n')

const HEAD = `# The last run

Made by \`pnpm bench --page docs\`; what it says is discussed in [benchmarks.md](../benchmarks.md). Of sections that were run apart each
stands under the head of its own run. The same figures for machines: [last-run.json](last-run.json).`

/** The files of the page of these runs, each the same for the same runs, byte for byte. */
export const pageFiles = (runs: readonly RunDocument[]): PageFile[] => {
  const merged = mergeRuns(runs)
  const shown = new Set<string>()
  const sections = merged.flatMap(run => run.sections)
  return [
    { name: 'last-run.md', text: `${[HEAD, ...merged.map(run => runMarkdown(run, shown))].join('\n\n')}\n` },
    { name: 'last-run.json', text: `${JSON.stringify({ runs: merged }, null, 1)}\n` },
    ...sections.flatMap(section =>
      plotsOf(section.name, section).map(({ file, plot }) => ({ name: `${file}.svg`, text: plotSvg(plot) })),
    ),
  ]
}
