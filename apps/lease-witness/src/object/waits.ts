import {
  endsWait,
  includesGeneration,
  type KnownGenerations,
  type LeaseState,
  toRemainingMs,
  type WaitCondition,
} from '../lease/lease.ts'
import { findDisplaced } from '../lease/wait-limit.ts'
import { type ReadOutcome, toReading, type WaitRequest } from '../lease-service.ts'
import type { ClockStandsStill, SlotCall } from './domain/clock.ts'

/*
 * A long poll. The worker holds the request of the client, and a WebSocket to the object of the slot. The object accepts it
 * with the Hibernation API, so that it can leave memory while clients wait for it, and the wait costs no duration. All timers
 * are in the worker, where waiting is free: the object has none, and no alarm.
 */

/** Per slot, with those of clients that have gone. The object notifies all of them in one event. */
export const MAX_WAITERS = 2_000
/** The platform stores at most 16 KiB with a hibernating WebSocket. A generation takes at most 9 bytes. */
const MAX_KNOWN_GENERATIONS = 1_000
/** How long the object may take to respond when the time of a wait is over. */
const RESPONSE_TIMEOUT_MS = 5_000

const REMAINING_HEADER = 'Lease-Remaining-Ms'

/** What the object sends over the WebSocket: the state of the slot, and whether it ends the wait. */
interface WaitMessage {
  readonly ends: boolean
  readonly outcome: ReadOutcome
}

/** What the runtime keeps with the WebSocket of a wait. */
interface StoredWait {
  readonly caller: string
  readonly condition: WaitCondition
  /** By the time of the slot. */
  readonly beganAt: number
}

const OVERLOADED: ReadOutcome = { kind: 'overloaded', reason: 'too many clients wait' }

const toText = (message: WaitMessage): string => JSON.stringify(message)

const toStored = (socket: WebSocket): StoredWait => socket.deserializeAttachment()

const end = (socket: WebSocket, text: string): void => {
  socket.send(text)
  // It no longer counts, and no later write notifies it again.
  socket.close(1_000)
}

/** The waiting clients of a slot. The runtime keeps them: this class has no state, so it survives hibernation. */
export class Waits {
  readonly #ctx: Pick<DurableObjectState, 'acceptWebSocket' | 'getWebSockets'>

  constructor(ctx: Pick<DurableObjectState, 'acceptWebSocket' | 'getWebSockets'>) {
    this.#ctx = ctx
  }

  get count(): number {
    return this.#open().length
  }

  /**
   * Begins a wait (101 with a WebSocket), or responds with an outcome that prevents it. No wake-up is lost: `current` must
   * have been read in the same event, and every later write calls `notify`.
   */
  begin({ condition, caller }: WaitTarget, current: LeaseState | undefined, now: number): Response {
    if (endsWait(condition, current, now)) return Response.json(toReading(current, now))
    if (!this.#makeRoom(caller)) return Response.json(OVERLOADED)
    const { 0: client, 1: server } = new WebSocketPair()
    this.#ctx.acceptWebSocket(server)
    server.serializeAttachment({ caller, condition, beganAt: now } satisfies StoredWait)
    const remainingMs = toRemainingMs(current, now)
    const headers = remainingMs === undefined ? {} : { [REMAINING_HEADER]: String(remainingMs) }
    return new Response(null, { status: 101, webSocket: client, headers })
  }

  /** Ends the waits that `current` ends. The output gate delays the messages until the storage has confirmed the write. */
  notify(current: LeaseState | undefined, now: number): void {
    let text: string | undefined
    for (const socket of this.#open()) {
      if (!endsWait(toStored(socket).condition, current, now)) continue
      text ??= toText({ ends: true, outcome: toReading(current, now) })
      end(socket, text)
    }
  }

  /** Responds to a waiter that asks for the state, at the expiry of the lease or at the end of its time. */
  respond(socket: WebSocket, current: LeaseState | undefined, now: number): void {
    if (socket.readyState !== WebSocket.OPEN) return
    // An expiry ends all waits: the first waiter that asks wakes the others.
    if (endsWait(toStored(socket).condition, current, now)) this.notify(current, now)
    else socket.send(toText({ ends: false, outcome: toReading(current, now) }))
  }

  #open(): WebSocket[] {
    return this.#ctx.getWebSockets().filter(({ readyState }) => readyState === WebSocket.OPEN)
  }

  /** Ends a wait if there is no room for one more. False: there is none to end. */
  #makeRoom(caller: string): boolean {
    // Includes closing sockets. The rest takes longer, so it is computed only if it can matter.
    if (this.#ctx.getWebSockets().length < MAX_WAITERS) return true
    const waits = this.#open().map(socket => ({ socket, ...toStored(socket) }))
    if (waits.length < MAX_WAITERS) return true
    const counts = new Map<string, number>()
    for (const wait of waits) counts.set(wait.caller, (counts.get(wait.caller) ?? 0) + 1)
    const displaced = findDisplaced(counts, caller)
    const candidates = waits.filter(wait => wait.caller === displaced)
    const [first] = candidates
    if (!first) return false
    const oldest = candidates.reduce((a, b) => (b.beganAt < a.beganAt ? b : a), first)
    end(oldest.socket, toText({ ends: true, outcome: OVERLOADED }))
    return true
  }
}

export interface WaitTarget {
  readonly address: SlotCall
  /** Identifies the token of the request. */
  readonly caller: string
  readonly condition: WaitCondition
}

/** A client that lists more generations than an object can store may get a response earlier than necessary. */
const limitCondition = (condition: WaitCondition): WaitCondition => {
  if (condition.kind === 'vacant' || condition.known === 'any') return condition
  if (condition.known.length <= MAX_KNOWN_GENERATIONS) return condition
  return { kind: 'changed', known: condition.known.toSorted((a, b) => b - a).slice(0, MAX_KNOWN_GENERATIONS) }
}

const toWaitUrl = ({ address, caller, condition }: WaitTarget): string => {
  const target: WaitTarget = { address, caller, condition: limitCondition(condition) }
  return `http://object/wait?${encodeURIComponent(JSON.stringify(target))}`
}

/** What a request of `waitForObject` waits for. */
export const parseWaitUrl = (url: string): WaitTarget => JSON.parse(decodeURIComponent(new URL(url).search.slice(1)))

/** What a waiter sends to ask for the state: the object may have forgotten which slot it is. */
const toWaitMessage = (address: SlotCall): string => JSON.stringify(address)

export const parseWaitMessage = (message: string | ArrayBuffer): SlotCall => JSON.parse(String(message))

/** The outcome of a wait whose time is over. */
const toFinalOutcome = (outcome: ReadOutcome, known: KnownGenerations): ReadOutcome =>
  outcome.kind === 'lease' && includesGeneration(known, outcome.lease.generation)
    ? { ...outcome, kind: 'not-modified' }
    : outcome

/** Ends each wait of this isolate. */
const ongoing = new Set<() => void>()
let isStopping = false
const STOPPING: ReadOutcome = { kind: 'lease-unavailable' }

/**
 * Ends the waits of this isolate, and each later one immediately: the process is about to stop. The platform has no such
 * event, but the local run has.
 */
export const endWaits = (): void => {
  isStopping = true
  for (const end of ongoing) end()
}

/** Waits in the worker until the object ends the wait, the time is over, the client disconnects or the object is reset. */
export const waitForObject = async (
  object: Pick<DurableObjectStub, 'fetch'>,
  address: SlotCall,
  { caller, condition, known, maxMs, signal }: WaitRequest,
): Promise<ReadOutcome | ClockStandsStill> => {
  if (isStopping) return STOPPING
  const response = await object.fetch(toWaitUrl({ address, caller, condition }), { headers: { Upgrade: 'websocket' } })
  const { webSocket: socket } = response
  if (!socket) return await response.json<ReadOutcome | ClockStandsStill>()

  const { promise: ended, resolve: end } = Promise.withResolvers<ReadOutcome>()
  const endUnavailable = (reason: string) => end({ kind: 'lease-unavailable', reason })
  const disconnect = () => end({ kind: 'absent' })
  const stop = () => end(STOPPING)
  const ask = () => {
    if (socket.readyState === WebSocket.OPEN) socket.send(toWaitMessage({ ...address, sentAt: Date.now() }))
  }
  let isOver = false
  let expiryTimer: number | null = null
  const askAtExpiry = (remainingMs: number | undefined) => {
    clearTimeout(expiryTimer)
    expiryTimer = remainingMs === undefined || remainingMs >= maxMs ? null : setTimeout(ask, remainingMs)
  }
  const endTimer = setTimeout(() => {
    isOver = true
    ask()
  }, maxMs)
  const responseTimer = setTimeout(
    () => endUnavailable(`the object did not respond within ${RESPONSE_TIMEOUT_MS} ms`),
    maxMs + RESPONSE_TIMEOUT_MS,
  )
  socket.addEventListener('message', ({ data }) => {
    const { ends, outcome }: WaitMessage = JSON.parse(String(data))
    if (ends) end(outcome)
    else if (isOver) end(toFinalOutcome(outcome, known))
    else askAtExpiry(outcome.kind === 'lease' ? outcome.remainingMs : undefined)
  })
  const lose = (cause: string) => endUnavailable(`the connection to the object was lost: ${cause}`)
  socket.addEventListener('close', ({ code, reason }) => lose(`${code} ${reason}`))
  socket.addEventListener('error', ({ message }) => lose(message))
  ongoing.add(stop)
  // While the object began the wait.
  if (isStopping) stop()
  signal.addEventListener('abort', disconnect)
  if (signal.aborted) disconnect()
  socket.accept()
  const remaining = response.headers.get(REMAINING_HEADER)
  askAtExpiry(remaining === null ? undefined : Number(remaining))
  try {
    return await ended
  } finally {
    ongoing.delete(stop)
    for (const timer of [endTimer, responseTimer, expiryTimer]) clearTimeout(timer)
    signal.removeEventListener('abort', disconnect)
    socket.close(1_000)
  }
}
