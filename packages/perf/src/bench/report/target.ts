import type { Spread } from '../statistics.ts'
import { figure, spread } from './numbers.ts'
import type { Table } from './table.ts'

/** What is aimed at. A figure, not a test: a run on a busy machine may miss it. */
export interface Target {
  readonly where: string
  /** Which figure: a ratio, or one with its unit. */
  readonly of: string
  readonly bound: 'at least' | 'at most'
  readonly target: number
  /** Null: it could not be measured here. */
  readonly measured: Spread | null
  readonly met: boolean
}

/** The median decides. */
export const targetOf = (
  where: string,
  of: string,
  bound: Target['bound'],
  target: number,
  measured: Spread | null,
): Target => {
  const met = measured !== null && (bound === 'at least' ? measured.median >= target : measured.median <= target)
  return { where, of, bound, target, measured, met }
}

export const targetTable = (title: string, targets: readonly Target[]): Table => ({
  columns: [
    { title, align: 'left' },
    { title: '', align: 'left' },
    { title: 'measured', align: 'left' },
    { title: '', align: 'left' },
  ],
  rows: targets.map(({ where, of, bound, target, measured, met }) => [
    where,
    `${of} ${bound} ${figure(target)}`,
    measured ? spread(measured) : 'unknown: needs Linux',
    met ? 'met' : 'missed',
  ]),
})
