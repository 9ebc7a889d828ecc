import { setTimeout as sleep } from 'node:timers/promises'
import { parseEvents } from '@pool/test-kit/sse-events.ts'
import type { Followed } from '../checks/log-stream.ts'
import type { Replica } from '../environment/replica.ts'
import type { Recorder } from './recorder.ts'

const SILENT_MS = 15_000
const AGAIN_MS = 300

/** Reads a deployment's log as an EventSource does: again, from where it was, whenever the stream ends before `done`. */
export const follow = async (
  reader: string,
  deployment: string,
  replicas: readonly Replica[],
  recorder: Recorder,
  withinMs: number,
): Promise<Followed> => {
  const lines: { id: number; data: string }[] = []
  let isDone = false
  const take = (text: string) => {
    for (const { name, data, lastEventId } of parseEvents(text)) {
      if (name === 'done') isDone = true
      else lines.push({ id: Number(lastEventId), data })
    }
  }
  const read = async (replica: Replica): Promise<number> => {
    const last = lines.at(-1)
    const response = await fetch(`${replica.url}/api/v1/deployments/${deployment}/logs`, {
      headers: last ? { 'Last-Event-ID': String(last.id) } : {},
      signal: AbortSignal.timeout(SILENT_MS),
    })
    if (response.status !== 200 || !response.body) return response.status
    let text = ''
    const decoder = new TextDecoder()
    try {
      for await (const chunk of response.body) text += decoder.decode(chunk, { stream: true })
    } finally {
      take(text)
    }
    return 200
  }
  const end = performance.now() + withinMs
  for (let turn = 0; !isDone && performance.now() < end; turn += 1) {
    const replica = replicas[turn % replicas.length]
    if (!replica) break
    const start = Date.now()
    const status = await read(replica).catch(() => null)
    recorder.count('follow', status)
    if (status === 404) break
    // A stream may end at any time, and says so by ending; a refusal to open one is another matter.
    if (status !== null && status >= 500)
      recorder.failures.push({ target: replica.number, what: 'follow', status, start, end: Date.now() })
    if (!isDone) await sleep(AGAIN_MS)
  }
  return { deployment, reader, lines, isDone }
}
