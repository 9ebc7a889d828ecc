import { deployment, deploymentEvent } from '@pool/contract'
import { parseEvents } from '@pool/test-kit/sse-events.ts'
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
