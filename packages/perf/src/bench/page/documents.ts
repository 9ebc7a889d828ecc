import type { Options } from '../arguments.ts'
import type { Machine } from '../machine.ts'
import type { Table } from '../report/table.ts'
import type { Figures } from './plots.ts'

export interface SectionDocument extends Figures {
  readonly name: string
  readonly title: string
  readonly notes: readonly string[]
  readonly tables: readonly Table[]
  readonly valid: boolean
  readonly faults: readonly string[]
}

/** What `--json` prints of one run. */
export interface RunDocument {
  readonly machine: Machine
  readonly options: Options
  readonly valid: boolean
  readonly sections: readonly SectionDocument[]
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isSection = (value: unknown): boolean =>
  isObject(value) &&
  typeof value.name === 'string' &&
  typeof value.title === 'string' &&
  Array.isArray(value.notes) &&
  Array.isArray(value.tables) &&
  Array.isArray(value.faults)

const isRun = (value: unknown): value is RunDocument =>
  isObject(value) &&
  isObject(value.machine) &&
  isObject(value.options) &&
  Array.isArray(value.sections) &&
  value.sections.every(isSection)

/** Of the text of a file: a run, or the runs of a page; null: it is neither. */
export const readDocuments = (text: string): readonly RunDocument[] | null => {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    return null
  }
  const runs = isObject(document) && Array.isArray(document.runs) ? document.runs : [document]
  return runs.every(isRun) ? runs : null
}

/** Of sections that are in several runs the last one counts; a run of which nothing is left is left out. */
export const mergeRuns = (runs: readonly RunDocument[]): RunDocument[] => {
  const lastOf = new Map(runs.flatMap((run, index) => run.sections.map(section => [section.name, index] as const)))
  return runs
    .map((run, index) => ({ ...run, sections: run.sections.filter(({ name }) => lastOf.get(name) === index) }))
    .filter(run => run.sections.length > 0)
}
