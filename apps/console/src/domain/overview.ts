import type { Overview } from '@pool/contract'

export interface PlotSeries {
  readonly label: string
  /** One value for each time; null: unknown. */
  readonly values: readonly (number | null)[]
  /** It counts faults. */
  readonly isFault?: boolean
}

/** The last known value, or undefined. */
export const findLatest = (values: readonly (number | null)[]): number | undefined =>
  values.findLast(value => value !== null) ?? undefined

const toRoundedText = (value: number): string => {
  if (Number.isInteger(value)) return value.toLocaleString('en')
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(2)))
}

/** The last known value with its unit; a dash if there is none. */
export const formatLatest = (values: readonly (number | null)[], unit: string): string => {
  const latest = findLatest(values)
  if (latest === undefined) return '–'
  return unit === '' ? toRoundedText(latest) : `${toRoundedText(latest)} ${unit}`
}

const known = (values: readonly (number | null)[]): readonly number[] => values.filter(value => value !== null)

/** The difference between the last and the first known value, with its sign: the growth of a pool. */
export const formatGrowth = (values: readonly (number | null)[]): string => {
  const numbers = known(values)
  const growth = (numbers.at(-1) ?? 0) - (numbers[0] ?? 0)
  if (growth === 0) return '±0'
  return growth > 0 ? `+${growth.toLocaleString('en')}` : `−${Math.abs(growth).toLocaleString('en')}`
}

/** Every replica stores a sample each ten seconds. */
const MAX_SILENCE_MS = 60_000

type Replica = Pick<Overview['replicas'][number], 'lastSeenAt' | 'isReady' | 'circuitOpen'>

/** Whether a replica has stored no sample for so long that its process must have ended. */
export const hasEnded = ({ lastSeenAt }: Pick<Replica, 'lastSeenAt'>, now: number): boolean =>
  now - Date.parse(lastSeenAt) > MAX_SILENCE_MS

/** The state of a replica by its last sample. */
export const describeReplica = (
  replica: Replica,
  now: number,
): { readonly tone: 'ok' | 'warn' | 'bad' | 'idle'; readonly text: string } => {
  if (hasEnded(replica, now)) return { tone: 'idle', text: 'has ended' }
  const { isReady, circuitOpen } = replica
  if (circuitOpen) return { tone: 'bad', text: 'DNS calls suspended' }
  return isReady ? { tone: 'ok', text: 'ready' } : { tone: 'warn', text: 'not ready' }
}
