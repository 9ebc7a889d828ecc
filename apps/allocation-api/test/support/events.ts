import { deployment, deploymentEvent } from '@pool/contract'
import { parseEvents, type StreamedEvent } from '@pool/test-kit/sse-events.ts'
import { expect } from 'vitest'

export { parseEvents, type StreamedEvent } from '@pool/test-kit/sse-events.ts'

/** Fails unless all events match the contract, without additional fields, and `done` is the last one. */
export const expectEvents = (text: string): void => {
  expect(text.startsWith('retry: ')).toBe(true)
  const events = parseEvents(text)
  for (const [at, { name, data }] of events.entries()) {
    const schema = name === 'done' ? deployment : deploymentEvent
    expect(['message', 'done']).toContain(name)
    expect(schema.parse(JSON.parse(data))).toEqual(JSON.parse(data))
    if (name === 'done') expect(at).toBe(events.length - 1)
  }
}

interface Following {
  /** Events so far. */
  readonly events: () => readonly StreamedEvent[]
  /** Resolves with all events when the stream ends or is aborted. */
  readonly ended: Promise<readonly StreamedEvent[]>
}

/** Reads an event stream as it arrives. */
export const followStream = async (url: string, headers: Record<string, string> = {}): Promise<Following> => {
  const response = await fetch(url, { headers })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  let text = ''
  const read = async () => {
    const decoder = new TextDecoder()
    try {
      for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true })
    } catch {
      // Aborted, for example by a process that was killed.
    }
    expectEvents(text)
    return parseEvents(text)
  }
  return { events: () => parseEvents(text), ended: read() }
}

export const toMessages = (events: readonly StreamedEvent[]): string[] =>
  events.filter(({ name }) => name === 'message').map(({ data }) => JSON.parse(data).message)
