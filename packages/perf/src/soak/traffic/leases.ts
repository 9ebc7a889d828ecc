import { setTimeout as sleep } from 'node:timers/promises'
import { Controller, parseCompletion, toLeaseRequest } from '@pool/test-kit/linearizability/controller.ts'
import type { Completion, Invocation, Operation } from '@pool/test-kit/linearizability/history.ts'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Witness } from '../environment/witness.ts'
import type { Quiescer } from './quiescer.ts'
import type { Recorder } from './recorder.ts'

const SLOTS = ['pair-0', 'pair-1', 'pair-2', 'pair-3', 'pair-4']
const REQUEST_TIMEOUT_MS = 4_000
const MEAN_PAUSE_MS = 90
const MAX_WAIT_SECONDS = 2

interface LeaseResult {
  readonly completion: Completion | undefined
  readonly times: Pick<Operation, 'start' | 'end' | 'sentAt' | 'receivedAt'>
}

/** Sends one request to the witness and records it. */
export const createLeaseSender = ({ url, token }: Pick<Witness, 'url' | 'token'>, recorder: Recorder) => {
  const send = async (slot: string, invocation: Invocation, waitSeconds: number) => {
    const { method, path, headers, body } = toLeaseRequest(slot, invocation)
    const response = await fetch(url + path, {
      method,
      headers: {
        Authorization: `Bearer ${token}`,
        ...headers,
        ...(waitSeconds > 0 && { Prefer: `wait=${waitSeconds}` }),
      },
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS + waitSeconds * 1_000),
    })
    return { status: response.status, tag: response.headers.get('etag') ?? '', text: await response.text() }
  }
  return async (slot: string, invocation: Invocation, waitSeconds = 0): Promise<LeaseResult> => {
    const [start, sentAt] = [performance.now(), Date.now()]
    const response = await send(slot, invocation, waitSeconds).catch(() => undefined)
    const times = { start, sentAt, end: performance.now(), receivedAt: Date.now() }
    const operation = waitSeconds > 0 ? 'lease wait' : `lease ${invocation.kind}`
    recorder.count(operation, response?.status ?? null)
    if (response && response.status < 500) return { completion: parseCompletion(response), times }
    const status = response?.status ?? null
    recorder.failedCalls.push({ target: 'witness', operation, status, start: sentAt, end: times.receivedAt })
    return { completion: undefined, times }
  }
}

/** A regional controller: contends for slots, renews and releases them, and waits for changes. Some requests are invalid on purpose. */
export const runController = async (
  name: string,
  sendLease: ReturnType<typeof createLeaseSender>,
  random: Prng,
  recorder: Recorder,
  quiescer: Quiescer,
): Promise<void> => {
  const controller = new Controller(name, random)
  const record = (slot: string, invocation: Invocation, { completion, times }: LeaseResult) => {
    const operation: Operation = { slot, invocation, ...times, ...(completion && { completion }) }
    recorder.leases.push(operation)
    controller.observe(operation)
  }
  const step = async () => {
    const slot = controller.chooseSlot(SLOTS, SLOTS[0])
    const invocation = controller.nextInvocation(slot)
    if (invocation.kind === 'read' && invocation.known !== undefined && random.chance(0.5)) {
      const result = await sendLease(slot, invocation, 1 + random.below(MAX_WAIT_SECONDS))
      // 200 with the known generation means that the lease expired, as in a read without a wait.
      return record(slot, result.completion?.status === 304 ? invocation : { kind: 'read' }, result)
    }
    const result = await sendLease(slot, invocation)
    record(slot, invocation, result)
    // A write without a response may have succeeded: read the slot.
    for (let isKnown = result.completion !== undefined; !isKnown; ) {
      await sleep(100 + random.below(300))
      const read = await sendLease(slot, { kind: 'read' })
      record(slot, { kind: 'read' }, read)
      isKnown = read.completion !== undefined
    }
  }
  while (await quiescer.run(step)) await sleep(random.below(2 * MEAN_PAUSE_MS))
}
