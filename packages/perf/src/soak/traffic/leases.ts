import { setTimeout as sleep } from 'node:timers/promises'
import { Controller, parseCompletion, toLeaseRequest } from '@pool/test-kit/linearizability/controller.ts'
import type { Completion, Invocation, Operation } from '@pool/test-kit/linearizability/history.ts'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Witness } from '../environment/witness.ts'
import type { Quiescer } from './pause-gate.ts'
import type { Recorder } from './recorder.ts'

const SLOTS = ['pair-0', 'pair-1', 'pair-2', 'pair-3', 'pair-4']
const PATIENCE_MS = 4_000
const MEAN_REST_MS = 90
const MOST_WAIT_S = 2

interface Sent {
  readonly completion: Completion | undefined
  readonly times: Pick<Operation, 'start' | 'end' | 'sentAt' | 'receivedAt'>
}

/** One call to the witness, taken down in traffic and failures. */
export const createLeaseCaller = ({ url, token }: Pick<Witness, 'url' | 'token'>, recorder: Recorder) => {
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
      signal: AbortSignal.timeout(PATIENCE_MS + waitSeconds * 1_000),
    })
    return { status: response.status, tag: response.headers.get('etag') ?? '', text: await response.text() }
  }
  return async (slot: string, invocation: Invocation, waitSeconds = 0): Promise<Sent> => {
    const [start, sentAt] = [performance.now(), Date.now()]
    const answer = await send(slot, invocation, waitSeconds).catch(() => undefined)
    const times = { start, sentAt, end: performance.now(), receivedAt: Date.now() }
    const operation = waitSeconds > 0 ? 'lease wait' : `lease ${invocation.kind}`
    recorder.count(operation, answer?.status ?? null)
    if (answer && answer.status < 500) return { completion: parseCompletion(answer), times }
    const status = answer?.status ?? null
    recorder.failures.push({ target: 'witness', what: operation, status, start: sentAt, end: times.receivedAt })
    return { completion: undefined, times }
  }
}

/** A regional controller: contends for slots, keeps them, gives them up, waits for news; some of it wrong on purpose. */
export const runController = async (
  name: string,
  call: ReturnType<typeof createLeaseCaller>,
  random: Prng,
  recorder: Recorder,
  gate: Quiescer,
): Promise<void> => {
  const controller = new Controller(name, random)
  const take = (slot: string, invocation: Invocation, { completion, times }: Sent) => {
    const operation: Operation = { slot, invocation, ...times, ...(completion && { completion }) }
    recorder.leases.push(operation)
    controller.observe(operation)
  }
  const step = async () => {
    const slot = controller.chooseSlot(SLOTS, SLOTS[0])
    const invocation = controller.nextInvocation(slot)
    if (invocation.kind === 'read' && invocation.known !== undefined && random.chance(0.5)) {
      const sent = await call(slot, invocation, 1 + random.below(MOST_WAIT_S))
      // 200 of the generation that is known says that it expired: as a plain read tells it, too.
      return take(slot, sent.completion?.status === 304 ? invocation : { kind: 'read' }, sent)
    }
    const sent = await call(slot, invocation)
    take(slot, invocation, sent)
    // Whoever got no answer to a write does not know whether it was made, and reads.
    for (let isKnown = sent.completion !== undefined; !isKnown; ) {
      await sleep(100 + random.below(300))
      const reading = await call(slot, { kind: 'read' })
      take(slot, { kind: 'read' }, reading)
      isKnown = reading.completion !== undefined
    }
  }
  while (await gate.pass(step)) await sleep(random.below(2 * MEAN_REST_MS))
}
