import type { Options } from '../arguments.ts'
import { type Machine, machineText } from '../machine.ts'
import type { Section, SectionResult } from '../section.ts'
import { tableText } from './table.ts'

export interface Report {
  readonly machine: Machine
  readonly options: Options
  readonly sections: readonly { readonly section: Section; readonly result: SectionResult }[]
}

export const isValid = ({ sections }: Report): boolean => sections.every(({ result }) => result.faults.length === 0)

const faultLines = (faults: readonly string[]): string[] =>
  faults.length === 0 ? [] : [['INVALID: not everything was answered as it should be.', ...faults].join('\n  ')]

/** `shown` holds the notes that stand above already: what is true of several sections is said once. */
export const sectionText = (section: Section, { notes, tables, faults }: SectionResult, shown: Set<string>): string => {
  const fresh = notes.filter(note => !shown.has(note))
  for (const note of fresh) shown.add(note)
  return [`== ${section.name}: ${section.title}`, ...fresh, ...tables.map(tableText), ...faultLines(faults)].join(
    '\n\n',
  )
}

export const headText = (machine: Machine, { seconds, rounds }: Pick<Options, 'seconds' | 'rounds'>): string =>
  `${machineText(machine)}\nmethod    ${rounds} interleaved rounds of ${seconds} s for each subject, after one to warm up`

export const reportJson = (report: Report): string =>
  JSON.stringify(
    {
      machine: report.machine,
      options: report.options,
      valid: isValid(report),
      sections: report.sections.map(({ section, result }) => ({
        name: section.name,
        title: section.title,
        notes: result.notes,
        valid: result.faults.length === 0,
        faults: result.faults,
        tables: result.tables,
        ...result.figures,
      })),
    },
    null,
    2,
  )
