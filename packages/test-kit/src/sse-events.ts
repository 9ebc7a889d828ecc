export interface StreamedEvent {
  readonly name: string
  readonly data: string
  /** Of this event or the last one before it that had any. */
  readonly lastEventId: string
}

/** The events of a stream as the HTML standard (section 9.2.6) has a browser read them; one that is not whole is none. */
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
