import type { Options } from './arguments.ts'
import type { Stage } from './environment/stage.ts'
import type { Table } from './report/table.ts'

export interface SectionContext {
  readonly stage: Stage
  readonly options: Options
  /** A line for whoever watches. */
  readonly say: (line: string) => void
}

export interface SectionResult {
  /** What the figures mean and what they leave out. */
  readonly notes: readonly string[]
  readonly tables: readonly Table[]
  /** The same as `tables`, for machines. */
  readonly figures: Readonly<Record<string, unknown>>
  /** Whatever was not as it has to be: with one of them, the run is no measurement. */
  readonly faults: readonly string[]
}

/** A part of the benchmark that can be run by its name. */
export interface Section {
  readonly name: string
  readonly title: string
  /** What it plays on: nothing else has to be started for it. */
  readonly on: 'postgres' | 'workerd'
  readonly run: (context: SectionContext) => Promise<SectionResult>
}
