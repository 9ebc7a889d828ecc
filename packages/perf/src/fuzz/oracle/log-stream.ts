import type { StreamLimits } from '@pool/test-kit/http1.ts'
import { parseEvents, type StreamedEvent } from '@pool/test-kit/sse-events.ts'
import type { Exchange } from '../connection.ts'

/** Two reads of the database precede every part of a stream. Each may take a whole statement timeout (5 s). */
const MAX_READS_MS = 10_000

/**
 * A stream has a comment after 15 s of silence. It ends with its deployment: after an outage, at the latest when the lease of
 * the run has expired (30 s) and the orphans before it are claimed. A full queue has 106 of them, and some are claimed every
 * 2 s.
 */
export const LOG_STREAM_LIMITS: StreamLimits = { silenceMs: 15_000 + MAX_READS_MS, durationMs: 120_000 }

/** A stream polls the deployment every 0.5 s. */
const MAX_END_DELAY_MS = 500 + MAX_READS_MS

const readFinishedAt = ({ data }: StreamedEvent): number => {
  try {
    return Date.parse(Object(JSON.parse(data)).finishedAt)
  } catch {
    return Number.NaN
  }
}

/** What is wrong with a complete log stream: its lines have no gaps, and it ends with `done` soon after its deployment. */
export const findLogStreamViolations = ({ request, outcome, sentAt, answeredAt }: Exchange): string[] => {
  if (outcome.kind !== 'response' || request.raw || request.method === 'HEAD') return []
  const { status, headers, text } = outcome.response
  if (status !== 200 || headers.get('content-type') !== 'text/event-stream') return []
  const events = parseEvents(text)
  const end = events.pop()
  if (end?.name !== 'done') return ['a log stream that ends without done']
  const ids = events.map(({ lastEventId }) => Number(lastEventId))
  const violations = ids.every((id, index) => id === Number(ids[0]) + index) ? [] : ['a gap in a log stream']
  const finishedAt = readFinishedAt(end) - performance.timeOrigin
  if (answeredAt - Math.max(finishedAt, sentAt) <= MAX_END_DELAY_MS) return violations
  return [
    ...violations,
    Number.isNaN(finishedAt) ? 'done without the end of the deployment' : 'a late end of a log stream',
  ]
}
