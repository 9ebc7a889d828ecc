import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Lease, RenewLeasesResponse } from '@pool/contract/lease'
import { LeaseElector } from '../../../src/leases/elector.ts'
import { LeaseClient } from '../../../src/leases/lease-client.ts'
import { RenewalBatch } from '../../../src/leases/renewal-batch.ts'
import { type LeadershipContext, LeadershipLostError } from '../../../src/leases/tenure-context.ts'

/**
 * A process with an elector for each slot, or several. It appends what happens to a file, one line for each event, which the kernel puts
 * into one order with the lines of the other candidates: `<ms> <name> <event> <slot> <data>`. The times are those of
 * CLOCK_MONOTONIC, which all processes of the machine share and no test sets.
 *
 * - `start <slot> <token>`, `stop <slot> <reason> <deadline>`: the callbacks.
 * - `write <slot> <token>`: a write to the protected resource, with the check of the tenure.
 * - `late <slot> <token>`: a write of an earlier tenure without the check, as if it had been in flight.
 * - `gap - <from> <to>`: the event loop did not run.
 * - `violation <slot> <text>`, `reports - <count>`: calls of `isLeader`.
 */

const { URL: url = '', TOKEN: token = '', NAME: name = '', SLOTS = '', EVENTS = '', DURATIONS = '{}' } = process.env
const isBatched = process.env.BATCH === '1'
const identities = Array.from({ length: Number(process.env.CANDIDATES) }, (_, index) =>
  index === 0 ? name : `${name}.${index}`,
)
const durations: { leaseDuration: number; renewDeadline: number; retryPeriod: number } = JSON.parse(DURATIONS)
const MARGIN_MS = durations.leaseDuration - durations.renewDeadline
const HEARTBEAT_MS = 10
const MIN_GAP_MS = 50
const LATE_WRITE_MS = 2 * durations.leaseDuration
const WRITE_CHANCE = 0.01

const now = () => Number(process.hrtime.bigint()) / 1e6
const events = openSync(EVENTS, 'a')
const reportAs = (identity: string, event: string, slot: string, ...data: (string | number)[]) =>
  writeSync(events, `${now().toFixed(3)} ${identity} ${event} ${slot} ${data.join(' ')}\n`)
const report = (event: string, slot: string, ...data: (string | number)[]) => reportAs(name, event, slot, ...data)

/**
 * The deadline of each holder and slot, from the requests and responses on the wire. A 412 counts too: it shows a lease that
 * an earlier write without a response has renewed.
 */
const deadlines = new Map<string, number>()
const extend = (slot: string, lease: Lease, remainingMs: number, sentAt: number) => {
  const deadline = sentAt + Math.min(remainingMs, durations.leaseDuration) - MARGIN_MS
  const key = `${lease.holder} ${slot}`
  deadlines.set(key, Math.max(deadlines.get(key) ?? 0, deadline))
}

const recordingFetch: typeof fetch = async (input, init) => {
  const sentAt = now()
  const response = await fetch(input, init)
  const text = await response.text()
  const { pathname } = new URL(String(input))
  if (response.status === 200 && pathname === '/leases/renew') {
    const { results }: RenewLeasesResponse = JSON.parse(text)
    for (const result of results) {
      if ('lease' in result) extend(result.slot, result.lease, result.remainingMs ?? 0, sentAt)
    }
  } else if (response.status === 200 || response.status === 412) {
    const remainingMs = Number(response.headers.get('Lease-Remaining-Ms') ?? 0)
    extend(decodeURIComponent(pathname.slice('/lease/'.length)), JSON.parse(text), remainingMs, sentAt)
  }
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
          guardFor(candidacy)?.write()
        },
        onStoppedLeading: reason => {
          reportAs(identity, 'stop', slot, reason, (deadlines.get(`${identity} ${slot}`) ?? 0).toFixed(3))
          const lateToken = candidacy.context?.fencingToken ?? 0
          setTimeout(() => reportAs(identity, 'late', slot, lateToken), LATE_WRITE_MS).unref()
        },
      },
    }),
  }
  return candidacy
}
const candidacies = SLOTS.split(',').flatMap(slot => identities.map(identity => createCandidacy(slot, identity)))

let reports = 0
/** Calls `isLeader` for every slot. */
const sample = () => {
  for (const candidacy of candidacies) {
    const { identity, slot, elector, context } = candidacy
    const calledAt = now()
    const deadline = deadlines.get(`${identity} ${slot}`) ?? 0
    if (!elector.isLeader()) continue
    reports += 1
    if (calledAt > deadline)
      report('violation', slot, `leads ${(calledAt - deadline).toFixed(3)} ms after its deadline`)
    if (!context?.isLeader()) continue
    if (context.signal.aborted) report('violation', slot, 'the signal is aborted while it leads')
    if (Math.random() > WRITE_CHANCE) continue
    try {
      guardFor(candidacy)?.write()
    } catch (error) {
      if (!(error instanceof LeadershipLostError)) throw error
    }
  }
}

let lastBeat = now()
setInterval(() => {
  const beat = now()
  if (beat - lastBeat > MIN_GAP_MS) report('gap', '-', lastBeat.toFixed(3), beat.toFixed(3))
  lastBeat = beat
  sample()
}, HEARTBEAT_MS)

const flag = new Int32Array(new SharedArrayBuffer(4))
const block = (ms: number) => {
  for (const end = now() + ms; now() < end; ) {
    Atomics.wait(flag, 0, 0, HEARTBEAT_MS)
    sample()
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
report('reports', '-', reports)
process.exit()
