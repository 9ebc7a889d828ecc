import { deployment, deploymentEvent } from '@pool/contract'
import { expect } from 'vitest'

export interface StreamedEvent {
  readonly name: string
  readonly data: string
  /** Of this event or the last one before it that had any. */
  readonly lastEventId: string
}

/** The events of a stream as the HTML standard (section 9.2.6) has a browser read them; one that is not whole is none. */
export const eventsOf = (text: string): StreamedEvent[] => {
  const events: StreamedEvent[] = []
  let [name, lastEventId, data]: [string, string, string[]] = ['message', '', []]
  for (const line of text.split(/\r\n|\n|\r/).slice(0, -1)) {
    const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (field === 'event') name = value
    if (field === 'data') data.push(value)
    if (field === 'id') lastEventId = value
    if (line !== '') continue
    if (data.length > 0) events.push({ name, data: data.join('\n'), lastEventId })
    ;[name, data] = ['message', []]
  }
  return events
}

/** Fails unless all data is what the contract says, without a field that it does not name, and `done` is the last. */
export const expectEvents = (text: string): void => {
  expect(text.startsWith('retry: ')).toBe(true)
  const events = eventsOf(text)
  for (const [at, { name, data }] of events.entries()) {
    const schema = name === 'done' ? deployment : deploymentEvent
    expect(['message', 'done']).toContain(name)
    expect(schema.parse(JSON.parse(data))).toEqual(JSON.parse(data))
    if (name === 'done') expect(at).toBe(events.length - 1)
  }
}
