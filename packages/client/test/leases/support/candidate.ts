import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Lease, RenewLeasesResponse } from '@pool/contract/lease'
import { LeaseElector } from '../../../src/leases/elector.ts'
import { LeaseClient } from '../../../src/leases/lease-client.ts'
import { RenewalBatch } from '../../../src/leases/renewal-batch.ts'
import { type LeadershipContext, LeadershipLostError } from '../../../src/leases/tenure-context.ts'

/**
 * A process with an elector for each slot, or several. It writes what happens to the pipe of the observer, immediately and
 * with one call for each line, so the pipe has the lines of all candidates in the order in which they were written. A line has
 * no time: that is for the clock of the observer. `<name> <event> <slot> <data>`:
 *
 * - `start <slot> <token>`, `stop <slot> <reason>`: the callbacks.
 * - `sent - <request>`, `held - <request> <slot>=<ms>@<generation>,…`: a request, and its response. The process may lead each
 *   slot until that many milliseconds after the request.
 * - `lost <slot> <request>`: a write without a response.
 * - `clock - <request> <ms>`: what the clock of the witness showed when it decided on the request.
 * - `beat - `: the event loop runs. Then each elector is asked whether it leads. `question - `: the same in a blocked event loop.
 * - `leads - <slot>,…`: the slots that were reported in reply.
 * - `write <slot> <token>`: a write to the protected resource, with the check of the tenure.
 * - `late <slot> <token>`: a write of an earlier tenure without the check, as if it had been in flight.
 * - `violation <slot> <text>`: what only the process itself can see, by its own clock.
 */

const { URL: url = '', TOKEN: token = '', NAME: name = '', SLOTS = '', PIPE = '', DURATIONS = '{}' } = process.env
const isBatched = process.env.BATCH === '1'
const identities = Array.from({ length: Number(process.env.CANDIDATES) }, (_, index) =>
  index === 0 ? name : `${name}.${index}`,
)
const durations: { leaseDuration: number; renewDeadline: number; retryPeriod: number } = JSON.parse(DURATIONS)
const MARGIN_MS = durations.leaseDuration - durations.renewDeadline
const HEARTBEAT_MS = 10
const LATE_WRITE_MS = 2 * durations.leaseDuration
const WRITE_CHANCE = 0.01

const now = () => Number(process.hrtime.bigint()) / 1e6
const pipe = openSync(PIPE, 'a')
const reportAs = (identity: string, event: string, slot: string, ...data: (string | number)[]) =>
  writeSync(pipe, `${identity} ${event} ${slot} ${data.join(' ')}\n`)
const report = (event: string, slot: string, ...data: (string | number)[]) => reportAs(name, event, slot, ...data)

/**
 * The deadline of each holder and slot, from the requests and responses on the wire. A 412 counts too: it shows a lease that
 * an earlier write without a response has renewed.
 */
const deadlines = new Map<string, number>()
/** Returns how long after the request the holder may lead. */
const extend = (slot: string, lease: Lease, remainingMs: number, sentAt: number): number => {
  const ms = Math.min(remainingMs, durations.leaseDuration) - MARGIN_MS
  const key = `${lease.holder} ${slot}`
  deadlines.set(key, Math.max(deadlines.get(key) ?? 0, sentAt + ms))
  return ms
}

let requests = 0
const recordingFetch: typeof fetch = async (input, init) => {
  requests += 1
  const request = requests
  const sentAt = now()
  report('sent', '-', request)
  const { pathname } = new URL(String(input))
  const slotOfPath = decodeURIComponent(pathname.slice('/lease/'.length))
  const lose = (error: unknown) => {
    if (init?.method === 'PUT') report('lost', slotOfPath, request)
    throw error
  }
  const response = await fetch(input, init).catch(lose)
  const text = await response.text().catch(lose)
  const held: string[] = []
  const clock: number[] = []
  const record = (slot: string, lease: Lease, remainingMs: number) => {
    const ms = extend(slot, lease, remainingMs, sentAt)
    if (lease.holder === name) held.push(`${slot}=${ms}@${lease.generation}`)
    if (remainingMs > 0) clock.push(Date.parse(lease.expiresAt) - remainingMs)
  }
  if (response.status === 200 && pathname === '/leases/renew') {
    const { results }: RenewLeasesResponse = JSON.parse(text)
    for (const result of results) {
      if ('lease' in result) record(result.slot, result.lease, result.remainingMs ?? 0)
    }
  } else if (response.status === 200 || response.status === 412) {
    const remainingMs = Number(response.headers.get('Lease-Remaining-Ms') ?? 0)
    record(slotOfPath, JSON.parse(text), remainingMs)
  }
  // Of the slots of a batch, the one that was furthest ahead and the one that was furthest behind.
  if (clock.length > 0) {
    report('clock', '-', request, Math.max(...clock))
    report('clock', '-', request, Math.min(...clock))
  }
  report('held', '-', request, held.join(','))
  return new Response(text === '' ? null : text, { status: response.status, headers: response.headers })
}

const client = new LeaseClient({ baseUrl: url, token, fetch: recordingFetch })
const leases = isBatched ? new RenewalBatch({ leases: client, identity: name }) : client
const stop = new AbortController()

interface Candidacy {
  readonly identity: string
  readonly slot: string
  readonly elector: LeaseElector
  context?: LeadershipContext
}

const guardFor = ({ identity, slot, context }: Candidacy) =>
  context?.guard({ write: (fencingToken: number) => reportAs(identity, 'write', slot, fencingToken) })

/** A process that was frozen in between has lost the lease. */
const writeAsLeader = (candidacy: Candidacy): void => {
  try {
    guardFor(candidacy)?.write()
  } catch (error) {
    if (!(error instanceof LeadershipLostError)) throw error
  }
}

const createCandidacy = (slot: string, identity: string): Candidacy => {
  const candidacy: Candidacy = {
    identity,
    slot,
    elector: new LeaseElector({
      ...durations,
      leases,
      slot,
      identity,
      ...(isBatched && { renewalPhaseMs: 0 }),
      callbacks: {
        onStartedLeading: context => {
          reportAs(identity, 'start', slot, context.fencingToken)
          candidacy.context = context
          writeAsLeader(candidacy)
        },
        onStoppedLeading: reason => {
          reportAs(identity, 'stop', slot, reason)
          const lateToken = candidacy.context?.fencingToken ?? 0
          setTimeout(() => reportAs(identity, 'late', slot, lateToken), LATE_WRITE_MS).unref()
        },
      },
    }),
  }
  return candidacy
}
const candidacies = SLOTS.split(',').flatMap(slot => identities.map(identity => createCandidacy(slot, identity)))

/** Calls `isLeader` for every slot. */
const sample = (question: 'beat' | 'question') => {
  report(question, '-')
  const led: string[] = []
  for (const candidacy of candidacies) {
    const { identity, slot, elector, context } = candidacy
    const calledAt = now()
    const deadline = deadlines.get(`${identity} ${slot}`) ?? 0
    if (!elector.isLeader()) continue
    led.push(slot)
    if (calledAt > deadline)
      report('violation', slot, `leads ${(calledAt - deadline).toFixed(3)} ms after its deadline`)
    if (context === undefined) continue
    // The deadline can pass between two reads, so the order matters: neither may contradict the one before it.
    const { aborted } = context.signal
    const leads = context.isLeader()
    if (leads && aborted) report('violation', slot, 'leads after its signal was aborted')
    if (!leads && !context.signal.aborted) report('violation', slot, 'does not lead, and its signal is not aborted')
    if (!leads || Math.random() > WRITE_CHANCE) continue
    writeAsLeader(candidacy)
  }
  if (led.length > 0) report('leads', '-', led.join(','))
}
setInterval(() => sample('beat'), HEARTBEAT_MS)

const flag = new Int32Array(new SharedArrayBuffer(4))
const block = (ms: number) => {
  for (const end = now() + ms; now() < end; ) {
    Atomics.wait(flag, 0, 0, HEARTBEAT_MS)
    sample('question')
  }
}

createInterface(process.stdin)
  .on('line', line => {
    const [command, argument = ''] = line.split(' ')
    if (command === 'block') block(Number(argument))
    else if (command === 'hand-over') {
      const led = candidacies.filter(({ elector }) => elector.isLeader())
      led[Math.floor(Math.random() * led.length)]?.elector.handOver()
    } else if (command === 'stop') stop.abort()
  })
  .on('close', () => process.exit())

process.stdout.write('ready\n')
await Promise.all(candidacies.map(({ elector }) => elector.run(stop.signal)))
process.exit()
