import { setTimeout as sleep } from 'node:timers/promises'
import type { StreamLimits } from '@pool/test-kit/http1.ts'
import fc from 'fast-check'
import { type Exchange, FuzzConnection } from './connection.ts'
import { createChoices, createSequence } from './generate/choices.ts'
import type { FuzzWorkload } from './generate/workload.ts'
import { findViolations, type Rules } from './oracle/oracle.ts'
import { type Counterexample, type FuzzStats, toKind } from './report/stats.ts'
import { type FuzzRequest, requestText } from './request.ts'

export interface Client {
  readonly workload: FuzzWorkload
  readonly port: number
  /** Part of the seeds of its sequences. */
  readonly name: string
}

export interface DriveOptions {
  readonly service: string
  readonly clients: readonly Client[]
  readonly requests: number
  readonly rules: Omit<Rules, 'isExplained'>
  readonly stats: FuzzStats
  /** The phase under which a request is counted when it is sent. */
  readonly phase: () => string
  /** Whether a fault at some time since `sentAt` explains the code of a 503. */
  readonly isExplained: (code: string, exchange: Exchange) => boolean
  /** Violations of the meaning of a response. Called for every exchange. */
  readonly onExchange: (exchange: Exchange) => readonly string[]
  readonly deadlineMs: number
  readonly stream?: StreamLimits
}

export interface Drive {
  readonly done: Promise<void>
  readonly sent: () => number
}

/** Requests of a sequence, which fast-check generates and shrinks as one value. */
const MAX_SEQUENCE = 20
/** After as many failed requests in a row the service is gone: the others would report the same. */
const MAX_LOST = 30
/** Limits of shrinking one violation. */
const MAX_ATTEMPTS = 2_000
const MAX_SHRINK_MS = 20_000

/** FNV-1a: a seed of 32 bits for a sequence of a client. */
const toSeed = (text: string): number => {
  let hash = 0x811c_9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193)
  return hash | 0
}

interface Found {
  readonly kind: string
  readonly what: string
  readonly row: string
}

/** Sends the requests of one client, a sequence at a time, and shrinks the first violation of each kind. */
class ClientRun {
  readonly #options: DriveOptions
  readonly #client: Client
  readonly #onSend: () => void
  readonly #connection: FuzzConnection
  #sent = 0
  #sequences = 0
  #lost = 0

  constructor(options: DriveOptions, client: Client, onSend: () => void) {
    this.#options = options
    this.#client = client
    this.#onSend = onSend
    this.#connection = new FuzzConnection({
      port: client.port,
      deadlineMs: options.deadlineMs,
      stream: options.stream,
    })
  }

  async run(share: number): Promise<void> {
    using _ = this.#connection
    while (this.#sent < share && this.#lost < MAX_LOST) {
      await this.#runSequence(Math.min(MAX_SEQUENCE, share - this.#sent))
    }
  }

  /** The first attempt counts. The others shrink the violation that it found, from the same state of the client. */
  async #runSequence(maxLength: number): Promise<void> {
    const { stats } = this.#options
    this.#sequences += 1
    const seed = toSeed(`${this.#client.name}, sequence ${this.#sequences}`)
    const before = this.#client.workload.clone()
    let attempts = 0
    let until = 0
    let target: Found | undefined
    let smallest: readonly FuzzRequest[] = []
    const property = fc.asyncProperty(createSequence(maxLength), async sequence => {
      attempts += 1
      if (target === undefined) {
        const { found, requests } = await this.#send(this.#client.workload, sequence)
        target = found.find(({ kind }) => stats.claim(kind))
        smallest = requests
        until = performance.now() + MAX_SHRINK_MS
        return target === undefined
      }
      if (attempts > MAX_ATTEMPTS || performance.now() > until) return true
      const { found, requests } = await this.#send(before.clone(), sequence, target.kind)
      const isReproduced = found.some(({ kind }) => kind === target?.kind)
      if (isReproduced) smallest = requests
      return !isReproduced
    })
    const { counterexamplePath } = await fc.check(property, { seed, numRuns: 1 })
    if (target === undefined) return
    const counterexample: Counterexample = {
      where: `${this.#client.name}, sequence ${this.#sequences}: fast-check seed ${seed}, path "${counterexamplePath}"`,
      requests: smallest.map(requestText),
    }
    stats.addCounterexample(target.kind, counterexample)
  }

  /** With `shrunkKind`, the requests are not counted, and end at the first violation of that kind. */
  async #send(
    workload: FuzzWorkload,
    sequence: readonly fc.GeneratorValue[],
    shrunkKind?: string,
  ): Promise<{ found: Found[]; requests: FuzzRequest[] }> {
    const { service, rules, stats, phase, isExplained, onExchange } = this.#options
    const isCounted = shrunkKind === undefined
    const all: Found[] = []
    const requests: FuzzRequest[] = []
    for (const generate of sequence) {
      const { request, learn } = workload.next(createChoices(generate))
      requests.push(request)
      const phaseAtStart = phase()
      const sentAt = performance.now()
      if (isCounted) {
        this.#sent += 1
        this.#onSend()
      }
      const outcome = await this.#connection.send(request)
      const exchange: Exchange = { request, outcome, sentAt, answeredAt: performance.now() }
      const explained = (code: string) => isExplained(code, exchange)
      const found = [...findViolations({ ...rules, isExplained: explained }, request, outcome), ...onExchange(exchange)]
      all.push(...found.map(what => ({ kind: toKind(service, request.row, what), what, row: request.row })))
      if (isCounted) stats.count({ service, phase: phaseAtStart, exchange, found })
      if (outcome.kind === 'response') learn(outcome.response)
      this.#lost = outcome.kind === 'response' || request.raw ? 0 : this.#lost + 1
      // A service that is gone refuses connections immediately.
      if (this.#lost > 3) await sleep(100)
      // Requests after the violation do not belong to its smallest sequence.
      if (this.#lost >= MAX_LOST || all.some(({ kind }) => kind === shrunkKind)) break
    }
    return { found: all, requests }
  }
}

/** Every client sends its share, one request after the other, and the oracle checks each response. */
export const drive = (options: DriveOptions): Drive => {
  const { clients, requests } = options
  let sent = 0
  const onSend = () => {
    sent += 1
  }
  const share = Math.ceil(requests / clients.length)
  const runs = clients.map(client => new ClientRun(options, client, onSend).run(share))
  return { done: Promise.all(runs).then(() => {}), sent: () => sent }
}
