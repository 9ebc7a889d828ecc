import { guard, StaleFencingTokenError } from '../../../src/leases/guard.ts'
import { type ClockStep, ClockWatch, type Moment } from './clock-watch.ts'

/** A line of a candidate: see candidate.ts. */
export interface Observation extends Moment {
  readonly candidate: string
  readonly kind: string
  readonly slot: string
  readonly data: readonly string[]
}

export interface TenureSummary {
  readonly tenures: number
  readonly reasons: Readonly<Record<string, number>>
  /** Tenures whose deadline passed while the process did not run. */
  readonly endedInPause: number
  readonly overlaps: readonly string[]
  /** Overlaps by a grant that was decided during a glitch of the clock of the witness. */
  readonly overlapsInGlitches: number
  readonly violations: readonly string[]
  readonly reports: number
  readonly writes: number
  readonly rejectedLateWrites: number
  readonly acceptedLateWrites: number
  /** The longest time between the two bounds of a moment. */
  readonly maxUncertaintyMs: number
  /** The steps of the clock of the witness, which its responses show. */
  readonly witnessClockSteps: readonly ClockStep[]
  readonly ends: readonly { readonly candidate: string; readonly at: number; readonly reason: string }[]
}

interface OpenTenure {
  readonly start: Moment
  readonly token: number
  /** The position of the start of the next tenure of another candidate. */
  supersededAt: number
  /** Superseded by a grant that was decided during a glitch: it may lead until its deadline. */
  isExcused: boolean
}

interface Deadline extends Moment {
  /** Of the lease in the response. */
  readonly generation: string
  readonly sent: Moment
  readonly receivedAt: number
}

interface Candidate {
  readonly requests: Map<string, Moment>
  /** The last write to each slot that had no response: it may have acquired the lease. */
  readonly lostWrites: Map<string, Moment>
  /** When the tenure of each slot must end, from the requests and responses. */
  readonly deadlines: Map<string, Deadline>
  readonly pauses: { readonly from: number; readonly to: number }[]
  lastBeat: Moment
  lastQuestion: { readonly after: number; readonly position: number }
}

/** A process that runs sends a beat every 10 ms. */
const MAX_BEAT_GAP_MS = 50
/** A timer is this late in a process that runs. */
const TIMER_GRACE_MS = 25

/** The tenures of a slot, and the resource that it protects. */
class Slot {
  readonly open = new Map<string, OpenTenure>()
  /** The position of each start, by fencing token. */
  readonly starts = new Map<number, number>()
  readonly resource = guard({ write: () => {} })
  newestToken = 0
  /** The grant of the newest token was decided during a glitch. */
  isNewestFromGlitch = false
  /** The position of the start of the newest tenure that has written. */
  newestWriter = 0
}

/**
 * Judges the observations of all candidates, in the order in which the pipe received them. The order is exact. Where a time
 * decides, a moment counts as wrong only if both of its bounds are.
 */
export class TenureJudge {
  readonly #candidates = new Map<string, Candidate>()
  readonly #slots = new Map<string, Slot>()
  readonly #reasons: Record<string, number> = {}
  readonly #overlaps: string[] = []
  readonly #violations: string[] = []
  readonly #ends: TenureSummary['ends'][number][] = []
  readonly #witnessClock = new ClockWatch()
  readonly #glitches: { readonly from: number; to: number }[] = []
  readonly #counts = {
    tenures: 0,
    overlapsInGlitches: 0,
    endedInPause: 0,
    reports: 0,
    writes: 0,
    rejectedLateWrites: 0,
    acceptedLateWrites: 0,
    maxUncertaintyMs: 0,
  }
  #position = 0

  observe(observation: Observation): void {
    const { kind, data, after, at } = observation
    this.#position += 1
    this.#counts.maxUncertaintyMs = Math.max(this.#counts.maxUncertaintyMs, at - after)
    if (kind === 'glitch') {
      this.#glitch(observation)
      return
    }
    const candidate = this.#findCandidate(observation)
    const [text = ''] = data
    if (kind === 'beat') this.#beat(candidate, observation)
    if (kind === 'beat' || kind === 'question') candidate.lastQuestion = { after, position: this.#position }
    else if (kind === 'leads') for (const slot of text.split(',')) this.#report(candidate, observation, slot)
    else if (kind === 'sent') candidate.requests.set(text, { after, at })
    else if (kind === 'lost') this.#lose(candidate, observation)
    else if (kind === 'clock') this.#readClock(candidate, observation)
    else if (kind === 'held') this.#extend(candidate, observation)
    else if (kind === 'start') this.#start(observation, Number(text))
    else if (kind === 'stop') this.#stop(candidate, observation, text)
    else if (kind === 'write' || kind === 'late') this.#write(observation, Number(text))
    else this.#violations.push(`${observation.candidate} ${observation.slot}: ${[kind, ...data].join(' ')}`)
  }

  summarize(): TenureSummary {
    return {
      ...this.#counts,
      reasons: this.#reasons,
      overlaps: this.#overlaps,
      violations: this.#violations,
      witnessClockSteps: this.#witnessClock.steps,
      ends: this.#ends,
    }
  }

  #findCandidate({ candidate: name, after, at }: Observation): Candidate {
    const known = this.#candidates.get(name)
    if (known) return known
    const candidate: Candidate = {
      requests: new Map(),
      lostWrites: new Map(),
      deadlines: new Map(),
      pauses: [],
      lastBeat: { after, at },
      lastQuestion: { after, position: this.#position },
    }
    this.#candidates.set(name, candidate)
    return candidate
  }

  #findSlot(name: string): Slot {
    const slot = this.#slots.get(name) ?? new Slot()
    this.#slots.set(name, slot)
    return slot
  }

  #beat(candidate: Candidate, { after, at }: Moment): void {
    const from = candidate.lastBeat.after
    if (at - from > MAX_BEAT_GAP_MS) candidate.pauses.push({ from: from - TIMER_GRACE_MS, to: at })
    candidate.lastBeat = { after, at }
  }

  /** `glitch begin`, `glitch end`, of the test itself. */
  #glitch({ data: [edge], after, at }: Observation): void {
    const current = this.#glitches.at(-1)
    if (edge === 'begin') this.#glitches.push({ from: after, to: Number.POSITIVE_INFINITY })
    else if (current) current.to = at
  }

  /** Whether the grant of a tenure that starts now can have been decided during a glitch. */
  #isFromGlitch({ deadlines, lostWrites }: Candidate, slot: string): boolean {
    const deadline = deadlines.get(slot)
    if (!deadline) return false
    const { after: from } = lostWrites.get(slot) ?? deadline.sent
    return this.#glitches.some(glitch => glitch.from <= deadline.receivedAt && glitch.to >= from)
  }

  #lose({ requests, lostWrites }: Candidate, { slot, data: [request = ''] }: Observation): void {
    const sent = requests.get(request)
    if (sent) lostWrites.set(slot, sent)
  }

  /** `clock <request> <ms>`: the clock of the witness, at a time between the request and now. */
  #readClock({ requests }: Candidate, { data: [request = '', wallMs], at }: Observation): void {
    const sent = requests.get(request)
    if (sent) this.#witnessClock.observe(Number(wallMs), { after: sent.after, at })
  }

  /** `held <request> <slot>=<ms>@<generation>,…`: the lease of a slot, counted from the request. */
  #extend({ requests, deadlines }: Candidate, { data: [request = '', held = ''], at: receivedAt }: Observation): void {
    const sent = requests.get(request)
    requests.delete(request)
    if (!sent || held === '') return
    for (const [slot = '', ms, generation = ''] of held.split(',').map(entry => entry.split(/[=@]/))) {
      const deadline = { after: sent.after + Number(ms), at: sent.at + Number(ms), generation, sent, receivedAt }
      if (deadline.at > (deadlines.get(slot)?.at ?? 0)) deadlines.set(slot, deadline)
    }
  }

  /** Whether the deadline of a tenure passed before `now`, while its process did not run. */
  #hasEndedInPause(candidate: Candidate, slot: string, now: Moment): boolean {
    const deadline = candidate.deadlines.get(slot)
    if (!deadline || deadline.after > now.at) return false
    const silence = { from: candidate.lastBeat.after, to: now.at }
    const pauses =
      silence.to - silence.from > MAX_BEAT_GAP_MS
        ? [...candidate.pauses, { from: silence.from - TIMER_GRACE_MS, to: silence.to }]
        : candidate.pauses
    return pauses.some(({ from, to }) => deadline.at >= from && deadline.after <= to)
  }

  #start(observation: Observation, token: number): void {
    const { candidate: name, slot: slotName, at } = observation
    const slot = this.#findSlot(slotName)
    if (slot.open.has(name)) this.#violations.push(`${name} ${slotName}: started twice`)
    if (token < slot.newestToken && slot.isNewestFromGlitch) {
      this.#startOvertaken(observation, token, slot)
      return
    }
    if (token <= slot.newestToken)
      this.#violations.push(`${name} ${slotName}: token ${token} after ${slot.newestToken}`)
    const candidate = this.#findCandidate(observation)
    const isFromGlitch = this.#isFromGlitch(candidate, slotName)
    candidate.lostWrites.delete(slotName)
    for (const [otherName, other] of slot.open) {
      if (otherName === name || other.supersededAt !== Number.POSITIVE_INFINITY) continue
      other.supersededAt = this.#position
      const otherCandidate = this.#candidates.get(otherName)
      if (otherCandidate && this.#hasEndedInPause(otherCandidate, slotName, observation)) continue
      if (isFromGlitch) {
        other.isExcused = true
        this.#counts.overlapsInGlitches += 1
        continue
      }
      const deadline = otherCandidate?.deadlines.get(slotName)
      // A generation at or above the token: the witness has lost an acknowledged write.
      this.#overlaps.push(
        `${slotName}: ${name} started at ${at} with token ${token}, ${otherName} has led since ${other.start.at} ` +
          `and may until ${deadline?.at} by a response with generation ${deadline?.generation}`,
      )
    }
    slot.open.set(name, { start: observation, token, supersededAt: Number.POSITIVE_INFINITY, isExcused: false })
    slot.starts.set(token, this.#position)
    slot.newestToken = token
    slot.isNewestFromGlitch = isFromGlitch
    this.#counts.tenures += 1
  }

  /** A grant that was decided during a glitch overtook the response to this one. The holder may lead until its deadline. */
  #startOvertaken({ candidate, ...start }: Observation, token: number, slot: Slot): void {
    if ([...slot.open.values()].some(other => other.token > token)) this.#counts.overlapsInGlitches += 1
    slot.open.set(candidate, { start, token, supersededAt: this.#position, isExcused: true })
    slot.starts.set(token, (slot.starts.get(slot.newestToken) ?? 0) - 0.5)
    this.#counts.tenures += 1
  }

  #stop(candidate: Candidate, observation: Observation, reason: string): void {
    const { candidate: name, slot: slotName, at } = observation
    const { open } = this.#findSlot(slotName)
    const tenure = open.get(name)
    open.delete(name)
    this.#reasons[reason] = (this.#reasons[reason] ?? 0) + 1
    if (!tenure) {
      this.#violations.push(`${name} ${slotName}: stopped without a start`)
      return
    }
    const isInPause = this.#hasEndedInPause(candidate, slotName, observation)
    if (isInPause) this.#counts.endedInPause += 1
    const deadline = candidate.deadlines.get(slotName)?.at ?? at
    this.#ends.push({ candidate: name, at: isInPause ? deadline : at, reason })
  }

  /** The candidate was asked after its last question or beat was written, and reports that it leads the slot. */
  #report({ lastQuestion, deadlines }: Candidate, { candidate: name }: Observation, slotName: string): void {
    this.#counts.reports += 1
    const tenure = this.#findSlot(slotName).open.get(name)
    const deadline = deadlines.get(slotName)?.at ?? 0
    if (!tenure) this.#violations.push(`${name} ${slotName}: leads without a tenure`)
    else if (!tenure.isExcused && lastQuestion.position > tenure.supersededAt)
      this.#violations.push(`${name} ${slotName}: leads after the start of another`)
    else if (lastQuestion.after > deadline)
      this.#violations.push(`${name} ${slotName}: leads ${lastQuestion.after - deadline} ms after its deadline`)
  }

  /** Sends a write to the resource. It is late if a tenure that started later has written before. */
  #write({ slot: slotName }: Observation, token: number): void {
    const slot = this.#findSlot(slotName)
    const start = slot.starts.get(token) ?? 0
    const isLate = start < slot.newestWriter
    this.#counts.writes += 1
    try {
      slot.resource.write(token)
      if (isLate) this.#counts.acceptedLateWrites += 1
      else slot.newestWriter = start
    } catch (error) {
      if (!(error instanceof StaleFencingTokenError)) throw error
      this.#counts.rejectedLateWrites += 1
    }
  }
}
