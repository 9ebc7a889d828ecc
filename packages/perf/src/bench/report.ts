import { type Machine, machineText } from '../shared/machine.ts'
import type { Spread } from '../shared/stats.ts'
import { left, spreadText, type Table, tableText, toFigure } from '../shared/table.ts'
import type { Environment } from './environment/environment.ts'
import type { BenchOptions, Timing } from './options.ts'

export interface SectionContext {
  readonly environment: Environment
  readonly options: BenchOptions
}

export interface SectionResult {
  /** What the figures mean, and what they do not cover. */
  readonly notes: readonly string[]
  readonly tables: readonly Table[]
  /** The content of `tables` for programs. */
  readonly figures: Readonly<Record<string, unknown>>
  /** Unexpected responses and other errors. With any of them, the figures are invalid. */
  readonly errors: readonly string[]
}

/** A part of the benchmark that can be run alone. */
export interface Section {
  readonly name: string
  readonly title: string
  /** The servers that have to be started for it. */
  readonly needs: 'postgres' | 'workerd'
  readonly run: (context: SectionContext) => Promise<SectionResult>
}

/** A performance goal. It does not fail the run: a busy machine may miss it. */
export interface Goal {
  readonly where: string
  /** Which figure: a ratio, or a figure with its unit. */
  readonly figure: string
  readonly bound: 'at least' | 'at most'
  readonly goal: number
  /** Null: this machine cannot measure it. */
  readonly measured: Spread | null
  readonly met: boolean
}

/** The median decides. */
export const toGoal = (
  where: string,
  figure: string,
  bound: Goal['bound'],
  goal: number,
  measured: Spread | null,
): Goal => {
  const met = measured !== null && (bound === 'at least' ? measured.median >= goal : measured.median <= goal)
  return { where, figure, bound, goal, measured, met }
}

export const goalTable = (title: string, goals: readonly Goal[]): Table => ({
  columns: [left(title), left('figure'), left('measured'), left('result')],
  rows: goals.map(({ where, figure, bound, goal, measured, met }) => [
    where,
    `${figure} ${bound} ${toFigure(goal)}`,
    measured ? spreadText(measured) : 'unknown: needs Linux',
    met ? 'met' : 'missed',
  ]),
})

export interface BenchReport {
  readonly machine: Machine
  readonly options: BenchOptions
  readonly sections: readonly { readonly name: string; readonly title: string; readonly result: SectionResult }[]
}

export const isValid = ({ sections }: BenchReport): boolean =>
  sections.every(({ result }) => result.errors.length === 0)

const fenced = (text: string): string => `\`\`\`\n${text}\n\`\`\``

/** Markdown. `printed` has the notes that were already printed: a note on several sections is printed once. */
export const sectionText = (
  { name, title }: Pick<Section, 'name' | 'title'>,
  { notes, tables, errors }: SectionResult,
  printed: Set<string>,
): string => {
  const unprinted = notes.filter(note => !printed.has(note))
  for (const note of unprinted) printed.add(note)
  const invalid = errors.length > 0 ? [['**Invalid: unexpected responses or errors.**\n', ...errors].join('\n- ')] : []
  return [`## ${name}: ${title}`, ...unprinted, ...tables.map(tableText), ...invalid].join('\n\n')
}

export const headText = (
  machine: Machine,
  { seconds, warmUpSeconds, rounds, cores }: Timing & Pick<BenchOptions, 'cores'>,
): string =>
  fenced(
    `${machineText(machine)}\nmethod    ${rounds} interleaved rounds of ${seconds} s for each target, after a warm-up of ${warmUpSeconds} s under each load${cores < 1 ? `\ncores     slowed down: a cgroup quota of ${cores} of each for everything` : ''}`,
  )

export const toBenchJson = (report: BenchReport): string =>
  JSON.stringify(
    {
      machine: report.machine,
      options: report.options,
      valid: isValid(report),
      sections: report.sections.map(({ name, title, result }) => ({
        name,
        title,
        notes: result.notes,
        valid: result.errors.length === 0,
        errors: result.errors,
        tables: result.tables,
        ...result.figures,
      })),
    },
    null,
    2,
  )
