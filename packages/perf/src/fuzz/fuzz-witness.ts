import { leaseWitnessDocument } from '@pool/contract/openapi/lease-witness'
import type { HttpResponse } from '@pool/test-kit/http1.ts'
import type { Exchange } from './connection.ts'
import { type Client, drive } from './drive.ts'
import type { WitnessEnvironment } from './environment/witness.ts'
import { createWitnessWorkload } from './generate/witness-workload.ts'
import { readDocument } from './oracle/document.ts'
import { findRightsViolations } from './oracle/token-rights.ts'
import { createGenerationLedger } from './oracle/uniqueness.ts'
import type { FuzzStats } from './report/stats.ts'
import type { FuzzRequest } from './request.ts'

export interface WitnessRunOptions {
  readonly environment: WitnessEnvironment
  readonly requests: number
  readonly seed: string
  readonly markPattern: RegExp
  readonly stats: FuzzStats
}

const DEADLINE_MS = 20_000

/** The generated methods that workerd knows. It rejects others itself. */
const KNOWN_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE']

/** Requests that do not reach the worker: workerd rejects them itself, in plain text. */
const isRejectedByWorkerd = ({ raw, method, target, headers }: FuzzRequest): boolean =>
  raw !== undefined ||
  !/^\/[!-~]*$/.test(target) ||
  /["<>\\^`{|}]/.test(target) ||
  !KNOWN_METHODS.includes(method) ||
  headers.some(line => /^host:/i.test(line))

const isFromWorkerd = ({ status, headers }: HttpResponse, request: FuzzRequest): boolean => {
  if (headers.has('x-request-id') || headers.get('content-type') === 'application/json') return false
  // workerd answers CONNECT with 500. In front of a deployed worker, clients cannot send it.
  const isTunnel = request.raw?.toString('latin1', 0, 8) === 'CONNECT '
  return isTunnel || (isRejectedByWorkerd(request) && [400, 408, 413, 414, 431, 501, 505].includes(status))
}

/** The slot of a PUT whose path was not mutated. */
const findSlot = ({ request: { target, method, row, raw } }: Exchange): string | null => {
  const [, spelling] = /^\/lease\/([^?#]+)/.exec(target) ?? []
  if (raw || row === 'paths' || method !== 'PUT' || spelling === undefined) return null
  try {
    return decodeURIComponent(spelling)
  } catch {
    return null
  }
}

export const fuzzWitness = async (options: WitnessRunOptions): Promise<void> => {
  const { environment, requests, seed, markPattern, stats } = options
  const document = readDocument(leaseWitnessDocument(), { problem: 'LeaseProblem', greedy: ['slot'] })
  const ledger = createGenerationLedger()
  const { rights, port } = environment
  const clients = rights.map(
    ({ token }, number): Client => ({
      workload: createWitnessWorkload({ document, number, token }),
      port,
      name: `witness client ${number} of seed ${seed}`,
    }),
  )
  await drive({
    service: 'witness',
    clients,
    requests,
    stats,
    deadlineMs: DEADLINE_MS,
    phase: () => 'up',
    rules: {
      document,
      mark: markPattern,
      isToken: () => false,
      isFromPlatform: isFromWorkerd,
      allowedOrigins: null,
    },
    isExplained: () => false,
    onExchange(exchange) {
      const { request, outcome } = exchange
      if (outcome.kind !== 'response' || isFromWorkerd(outcome.response, request)) return []
      const { response } = outcome
      const own = rights[request.tenant ?? -1]
      const violations = own ? findRightsViolations(own, request, response) : []
      const slot = findSlot(exchange)
      if (slot === null || response.status !== 200) return violations
      const { generation, holder } = Object(JSON.parse(response.text || '{}'))
      const duplicate = typeof generation === 'number' ? ledger.record(slot, generation, String(holder)) : null
      return duplicate === null ? violations : [...violations, 'a generation was granted twice']
    },
  }).done
}
