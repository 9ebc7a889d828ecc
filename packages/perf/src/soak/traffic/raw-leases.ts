import { setTimeout as sleep } from 'node:timers/promises'
import { Controller, parseCompletion, toLeaseRequest } from '@pool/test-kit/linearizability/controller.ts'
import type { Invocation, Operation } from '@pool/test-kit/linearizability/history.ts'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Witness } from '../environment/witness.ts'
import type { Quiescer } from './quiescer.ts'

const MEAN_PAUSE_MS = 90
const MAX_WAIT_SECONDS = 2
const OBSERVER_PAUSE_MS = 150

export interface RawLeaseOptions {
  readonly witness: Pick<Witness, 'url' | 'token'>
  /** Records the requests. */
  readonly fetch: typeof fetch
  readonly slots: readonly string[]
  readonly random: Prng
  readonly quiescer: Quiescer
}

/** Sends a request without the client of the leases. Without a completion: no response, or a 5xx. */
const sendRaw = async (
  { witness, fetch: send }: RawLeaseOptions,
  slot: string,
  invocation: Invocation,
  waitSeconds = 0,
): Promise<Operation> => {
  const { method, path, headers, body } = toLeaseRequest(slot, invocation)
  const wait = waitSeconds > 0 ? { Prefer: `wait=${waitSeconds}` } : {}
  const [start, sentAt] = [performance.now(), Date.now()]
  const response = await send(witness.url + path, {
    method,
    headers: { Authorization: `Bearer ${witness.token}`, ...headers, ...wait },
    ...(body === undefined ? {} : { body }),
  }).catch(() => undefined)
  const times = { start, sentAt, end: performance.now(), receivedAt: Date.now() }
  if (!response || response.status >= 500) return { slot, invocation, ...times }
  const tag = response.headers.get('etag') ?? ''
  const completion = parseCompletion({ status: response.status, tag, text: await response.text() })
  return { slot, invocation, ...times, completion }
}

/**
 * A controller without an elector: it contends for the slots, also with writes that are invalid on purpose, and requests
 * leases in the millisecond of their expiry.
 */
export const runRawController = async (name: string, options: RawLeaseOptions): Promise<void> => {
  const { slots, random, quiescer } = options
  const controller = new Controller(name, random)
  const send = async (slot: string, invocation: Invocation, waitSeconds?: number) => {
    const operation = await sendRaw(options, slot, invocation, waitSeconds)
    controller.observe(operation)
    return operation
  }
  while (!quiescer.isEnded) {
    const slot = controller.chooseSlot(slots, slots[0])
    const invocation = controller.nextInvocation(slot)
    const canWait = invocation.kind === 'read' && invocation.known !== undefined
    let { completion } = await send(
      slot,
      invocation,
      canWait && random.chance(0.5) ? 1 + random.below(MAX_WAIT_SECONDS) : 0,
    )
    // A write without a response may have succeeded: read the slot.
    while (!completion && !quiescer.isEnded) {
      await sleep(100 + random.below(300))
      completion = (await send(slot, { kind: 'read' })).completion
    }
    await sleep(random.below(2 * MEAN_PAUSE_MS))
  }
}

/** Reads every slot again and again, so that the history of each has readers that take no part in the election. */
export const runLeaseObserver = async (options: RawLeaseOptions): Promise<void> => {
  const { slots, random, quiescer } = options
  while (!quiescer.isEnded) {
    await sendRaw(options, random.pick(slots), { kind: 'read' })
    await sleep(random.below(2 * OBSERVER_PAUSE_MS))
  }
}
