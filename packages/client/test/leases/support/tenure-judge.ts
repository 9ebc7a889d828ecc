import { guard, StaleFencingTokenError } from '../../../src/leases/guard.ts'

export interface ProcessPause {
  readonly from: number
  readonly to: number
}

interface Event {
  readonly at: number
  readonly candidate: string
  readonly kind: string
  readonly slot: string
  readonly data: readonly string[]
}

interface LoggedTenure {
  readonly candidate: string
  readonly slot: string
  readonly startedAt: number
  readonly token: number
  /** When it ended: its callback, or its deadline if the process did not run then. Infinity: it has not ended. */
  endedAt: number
  reason: string
}

export interface TenureSummary {
  readonly tenures: number
  readonly reasons: Readonly<Record<string, number>>
  /** Tenures whose deadline passed while the process did not run. */
  readonly endedInPause: number
  readonly overlaps: readonly string[]
  readonly violations: readonly string[]
  readonly reports: number
  readonly writes: number
  readonly rejectedLateWrites: number
  readonly acceptedLateWrites: number
  /** How long after its deadline the callback of a running process came, at most. */
  readonly maxStopDelayMs: number
  readonly tenuresEndedAt: readonly { readonly candidate: string; readonly at: number; readonly reason: string }[]
}

/** A timer is this late in a process that runs. */
const TIMER_GRACE_MS = 25

const parseEvents = (text: string): Event[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map(line => {
      const [at, candidate = '', kind = '', slot = '', ...data] = line.split(' ')
      return { at: Number(at), candidate, kind, slot, data }
    })

export const countStarts = (text: string): number => text.split(' start ').length - 1

/** Judges the events of all candidates, in the order in which they happened. */
export const summarizeTenures = (text: string): TenureSummary => {
  const events = parseEvents(text)
  const pauses = Map.groupBy(
    events.filter(({ kind }) => kind === 'gap'),
    ({ candidate }) => candidate,
  )
  const wasPaused = (candidate: string, at: number): boolean =>
    (pauses.get(candidate) ?? []).some(
      ({ data: [from, to] }) => at >= Number(from) - TIMER_GRACE_MS && at <= Number(to),
    )
  const open = new Map<string, LoggedTenure>()
  const tenures: LoggedTenure[] = []
  const reasons: Record<string, number> = {}
  const violations: string[] = []
  let endedInPause = 0
  let maxStopDelayMs = 0
  let reports = 0
  for (const { at, candidate, kind, slot, data } of events) {
    const key = `${candidate} ${slot}`
    if (kind === 'start') {
      if (open.has(key)) violations.push(`${key}: started twice`)
      const tenure = {
        candidate,
        slot,
        startedAt: at,
        token: Number(data[0]),
        endedAt: Number.POSITIVE_INFINITY,
        reason: '',
      }
      open.set(key, tenure)
      tenures.push(tenure)
    } else if (kind === 'stop') {
      const tenure = open.get(key)
      open.delete(key)
      const [reason = '', deadlineText] = data
      reasons[reason] = (reasons[reason] ?? 0) + 1
      if (!tenure) {
        violations.push(`${key}: stopped without a start`)
        continue
      }
      const deadline = Number(deadlineText)
      const isPaused = deadline < at && wasPaused(candidate, deadline)
      if (isPaused) endedInPause += 1
      else maxStopDelayMs = Math.max(maxStopDelayMs, at - deadline)
      tenure.endedAt = isPaused ? Math.max(deadline, tenure.startedAt) : at
      tenure.reason = reason
    } else if (kind === 'violation') violations.push(`${key}: ${data.join(' ')}`)
    else if (kind === 'reports') reports += Number(data[0])
  }
  const overlaps = [...Map.groupBy(tenures, ({ slot }) => slot).values()].flatMap(slotTenures =>
    slotTenures.flatMap((tenure, index) => {
      const later = slotTenures[index + 1]
      if (!later) return []
      if (later.token <= tenure.token) violations.push(`${later.slot}: token ${later.token} after ${tenure.token}`)
      if (later.startedAt >= tenure.endedAt) return []
      return [
        `${tenure.slot}: ${later.candidate} started at ${later.startedAt}, ${tenure.candidate} ended at ${tenure.endedAt}`,
      ]
    }),
  )
  return {
    tenures: tenures.length,
    reasons,
    endedInPause,
    overlaps,
    violations,
    reports,
    maxStopDelayMs,
    tenuresEndedAt: tenures.map(({ candidate, endedAt, reason }) => ({ candidate, at: endedAt, reason })),
    ...applyWrites(events),
  }
}

/** Sends the writes to a fenced resource for each slot. A write is late if a tenure that started later has written before. */
const applyWrites = (events: readonly Event[]) => {
  const resources = new Map<string, { readonly write: (token: number) => void }>()
  /** The position of each tenure in the order of the starts. */
  const starts = new Map<string, number>()
  const newest = new Map<string, number>()
  let writes = 0
  let rejectedLateWrites = 0
  let acceptedLateWrites = 0
  for (const [position, { kind, slot, data }] of events.entries()) {
    if (kind === 'start') starts.set(`${slot} ${data[0]}`, position)
    if (kind !== 'write' && kind !== 'late') continue
    const token = Number(data[0])
    const resource = resources.get(slot) ?? guard({ write: () => {} })
    resources.set(slot, resource)
    const start = starts.get(`${slot} ${token}`) ?? 0
    const isLate = start < (newest.get(slot) ?? 0)
    writes += 1
    try {
      resource.write(token)
      if (isLate) acceptedLateWrites += 1
      else newest.set(slot, start)
    } catch (error) {
      if (!(error instanceof StaleFencingTokenError)) throw error
      rejectedLateWrites += 1
    }
  }
  return { writes, rejectedLateWrites, acceptedLateWrites }
}
