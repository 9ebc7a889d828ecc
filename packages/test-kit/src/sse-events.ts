export interface StreamedEvent {
  readonly name: string
  readonly data: string
  /** The id of this event or of the last event before it that had one. */
  readonly lastEventId: string
}

/** Parses a stream as the HTML standard (section 9.2.6) specifies. Ignores an incomplete last event. */
export const parseEvents = (text: string): StreamedEvent[] => {
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
