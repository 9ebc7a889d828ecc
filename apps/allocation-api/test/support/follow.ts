import { expectEvents, parseEvents, type StreamedEvent } from './events.ts'

export interface Following {
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
