/** Yields the lines of UTF-8 text. Omits an incomplete last line. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line
  }
}

export interface ServerSentEvent {
  /** `message` if the event has no name. */
  readonly name: string
  readonly data: string
  /** The id of this event, or of the last one before it that had an id. */
  readonly lastEventId: string
}

/** Yields the events of a stream (HTML standard, section 9.2.6). Comments and an incomplete last event are omitted. */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent, void> {
  let [name, lastEventId, data]: [string, string, string[]] = ['message', '', []]
  for await (const line of readLines(chunks)) {
    const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (field === 'event') name = value
    if (field === 'data') data.push(value)
    if (field === 'id') lastEventId = value
    if (line !== '') continue
    if (data.length > 0) yield { name, data: data.join('\n'), lastEventId }
    ;[name, data] = ['message', []]
  }
}
