import { setTimeout as sleep } from 'node:timers/promises'
import { parseEvents } from '@pool/test-kit/sse-events.ts'
import type { FollowedLog } from '../checks/log-stream.ts'
import type { Replica } from '../environment/replica.ts'
import type { Recorder } from './recorder.ts'

const READ_TIMEOUT_MS = 15_000
const RECONNECT_MS = 300

/** Reads a deployment's log as an EventSource does: reconnects with Last-Event-ID until the event `done`. */
export const followLog = async (
  reader: string,
  deployment: string,
  replicas: readonly Replica[],
  recorder: Recorder,
  withinMs: number,
): Promise<FollowedLog> => {
  const lines: { id: number; data: string }[] = []
  let isDone = false
  const addEvents = (text: string) => {
    for (const { name, data, lastEventId } of parseEvents(text)) {
      if (name === 'done') isDone = true
      else lines.push({ id: Number(lastEventId), data })
    }
  }
  const read = async (replica: Replica): Promise<number> => {
    const last = lines.at(-1)
    const response = await fetch(`${replica.url}/api/v1/deployments/${deployment}/logs`, {
      headers: last ? { 'Last-Event-ID': String(last.id) } : {},
      signal: AbortSignal.timeout(READ_TIMEOUT_MS),
    })
    if (response.status !== 200 || !response.body) return response.status
    let text = ''
    const decoder = new TextDecoder()
    try {
      for await (const chunk of response.body) text += decoder.decode(chunk, { stream: true })
    } finally {
      addEvents(text)
    }
    return 200
  }
  const end = performance.now() + withinMs
  for (let attempt = 0; !isDone && performance.now() < end; attempt += 1) {
    const replica = replicas[attempt % replicas.length]
    if (!replica) break
    const start = Date.now()
    const status = await read(replica).catch(() => null)
    recorder.count('follow', status)
    if (status === 404) break
    // A stream may end at any time. Only a 5xx response to the connection attempt is an error.
    if (status !== null && status >= 500)
      recorder.failedCalls.push({ target: replica.number, operation: 'follow', status, start, end: Date.now() })
    if (!isDone) await sleep(RECONNECT_MS)
  }
  return { deployment, reader, lines, isDone }
}
