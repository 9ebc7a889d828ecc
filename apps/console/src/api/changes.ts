import type { ChangeTopic } from '@pool/contract'
import { changeEvent } from '@pool/contract'
import { client } from './client.ts'

export type ConnectionState = 'connecting' | 'connected' | 'lost'

type TopicListener = (topics: readonly ChangeTopic[]) => void
type StateListener = (state: ConnectionState) => void

const RECONNECT_MS = 3_000
/** The service ends each stream after some minutes. A browser that reconnects within this time has lost nothing. */
const LOST_MS = 6_000

const topicListeners = new Set<TopicListener>()
const stateListeners = new Set<StateListener>()
let source: EventSource | null = null
let timer: ReturnType<typeof setTimeout> | undefined
let lostTimer: ReturnType<typeof setTimeout> | undefined
let state: ConnectionState = 'connecting'

const setState = (next: ConnectionState): void => {
  if (state === next) return
  state = next
  for (const listener of stateListeners) listener(next)
}

const connect = (): void => {
  source = new EventSource('/api/v1/changes')
  source.onopen = () => {
    clearTimeout(lostTimer)
    lostTimer = undefined
    setState('connected')
  }
  source.onmessage = ({ data }: MessageEvent<string>) => {
    const parsed = changeEvent.safeParse(parseJson(data))
    if (parsed.success) for (const listener of topicListeners) listener(parsed.data.topics)
  }
  source.onerror = () => {
    lostTimer ??= setTimeout(() => setState('lost'), LOST_MS)
    if (source?.readyState !== EventSource.CLOSED) return
    // After an error response, an EventSource does not reconnect, and hides the status: another call notices the end of
    // the session, which another tab may have ended.
    client.getSession().catch(() => undefined)
    timer = setTimeout(connect, RECONNECT_MS)
  }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * A browser has few connections to a service without HTTP/2, and each stream takes one: only the visible tabs have one. The first
 * event of a stream names every topic, so that a tab reads again what it missed.
 */
const followVisibility = (): void => {
  if (document.visibilityState === 'visible') {
    if (source === null) connect()
    return
  }
  disconnect()
}

const disconnect = (): void => {
  clearTimeout(timer)
  clearTimeout(lostTimer)
  lostTimer = undefined
  source?.close()
  source = null
  setState('connecting')
}

/** Follows the changes of the service until `stopChanges`. A page reads again what an event names. */
export const startChanges = (): void => {
  document.addEventListener('visibilitychange', followVisibility)
  followVisibility()
}

export const stopChanges = (): void => {
  document.removeEventListener('visibilitychange', followVisibility)
  disconnect()
}

export const onChange = (listener: TopicListener): (() => void) => {
  topicListeners.add(listener)
  return () => void topicListeners.delete(listener)
}

export const onConnectionState = (listener: StateListener): (() => void) => {
  stateListeners.add(listener)
  listener(state)
  return () => void stateListeners.delete(listener)
}
