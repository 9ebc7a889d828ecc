import { leaseWitnessDocument } from '@pool/openapi/lease-witness'
import { type Client, drive, type Exchange } from './drive.ts'
import type { WitnessStage } from './environment/witness.ts'
import { randomOf } from './generate/random.ts'
import { createWitnessLane } from './generate/witness-workload.ts'
import { readDocument } from './oracle/document.ts'
import { createLeaseLedger } from './oracle/uniqueness.ts'
import type { Tally } from './report/stats.ts'
import type { Answer } from './wire/answer.ts'
import type { FuzzRequest } from './wire/request.ts'

export interface WitnessRun {
  readonly stage: WitnessStage
  readonly requests: number
  readonly seed: string
  readonly pattern: RegExp
  readonly tally: Tally
}

const CLIENTS = 32
const DEADLINE_MS = 20_000

/** Of those that are sent, the ones that workerd knows: others it does not pass on. */
const knownMethods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE']

/** What never reaches the worker: workerd refuses it itself, in plain text. */
const isBeyondWorker = ({ raw, method, target, headers }: FuzzRequest): boolean =>
  raw !== undefined ||
  !/^\/[!-~]*$/.test(target) ||
  /["<>\\^`{|}]/.test(target) ||
  !knownMethods.includes(method) ||
  headers.some(line => /^host:/i.test(line))

const isWorkerds = ({ status, headers }: Answer, request: FuzzRequest): boolean => {
  if (headers.has('x-request-id') || headers.get('content-type') === 'application/json') return false
  // A tunnel is 500 there; in front of a deployed worker nobody can ask for one.
  const isTunnel = request.raw?.toString('latin1', 0, 8) === 'CONNECT '
  return isTunnel || (isBeyondWorker(request) && [400, 408, 413, 414, 431, 501, 505].includes(status))
}

/** The slot of a request whose path is as it was made. */
const slotOf = ({ request: { target, method, row, raw } }: Exchange): string | null => {
  const [, spelling] = /^\/lease\/([^?#]+)/.exec(target) ?? []
  if (raw || row === 'paths' || method !== 'PUT' || spelling === undefined) return null
  try {
    return decodeURIComponent(spelling)
  } catch {
    return null
  }
}

export const fuzzWitness = async ({ stage, requests, seed, pattern, tally }: WitnessRun): Promise<void> => {
  const document = readDocument(leaseWitnessDocument(), { problem: 'LeaseProblem', greedy: ['slot'] })
  const ledger = createLeaseLedger()
  const clients = Array.from({ length: CLIENTS }, (_, number): Client => {
    const name = `witness client ${number} of seed ${seed}`
    const token = stage.tokens[number % 2 === 0 ? 0 : 1]
    return { lane: createWitnessLane({ document, random: randomOf(name), number, token }), port: stage.port, name }
  })
  await drive({
    service: 'witness',
    clients,
    requests,
    tally,
    deadlineMs: DEADLINE_MS,
    phase: () => 'up',
    rules: { document, mark: pattern, isToken: () => false, isPlatforms: isWorkerds },
    isExplained: () => false,
    onExchange(exchange) {
      const slot = slotOf(exchange)
      const { outcome } = exchange
      if (slot === null || outcome.kind !== 'answered' || outcome.answer.status !== 200) return []
      const { generation, holder } = Object(JSON.parse(outcome.answer.body.toString('utf8') || '{}'))
      const fault = typeof generation === 'number' ? ledger.granted(slot, generation, String(holder)) : null
      return fault === null ? [] : ['a generation was granted twice']
    },
  }).done
}
