import { withTimeout } from '@pool/runtime/database/time'
import { isAtOrBelow, type RecordSet } from '../../domain/rrset.ts'
import { MAX_MESSAGE_SIZE } from '../../wire/message.ts'
import type { ZoneView } from './domain/resolve.ts'
import { resolve } from './domain/resolve.ts'
import type { Query, Response } from './message.ts'
import { encodeResponse, parseQuery, toUdpLimit } from './message.ts'

export interface ResponderOptions {
  readonly listZones: () => readonly string[]
  readonly lookup: (zone: string, name: string) => Promise<ZoneView>
  /** Called for the first of consecutive failures only: an outage is one message, not one per query. */
  readonly onError: (error: unknown) => void
  /** Less than the timeout of a resolver, about five seconds: SERVFAIL is better than no response. */
  readonly lookupTimeoutMs?: number
  /** Lookups in flight, including those that timed out. Further queries get SERVFAIL immediately. */
  readonly maxLookups?: number
}

/** Never rejects. `undefined`: no response. */
export type Respond = (message: Buffer, transport: 'udp' | 'tcp') => Promise<Buffer | undefined>

/** CNAMEs followed for one question. A longer chain or a loop gives the records found so far. */
const MAX_CHAIN_LENGTH = 8

const emptyResponse = (rcode: Response['rcode']): Response => ({ rcode, answers: [], authority: [] })

export const createResponder = (options: ResponderOptions): Respond => {
  const { lookup, onError, lookupTimeoutMs = 2000, maxLookups = 1000 } = options
  let pending = 0
  let isFailing = false

  const boundedLookup = (zone: string, name: string): Promise<ZoneView> => {
    if (pending >= maxLookups) throw new Error(`more than ${maxLookups} lookups are waiting`)
    pending += 1
    const settled = lookup(zone, name).finally(() => {
      pending -= 1
    })
    return withTimeout(settled, lookupTimeoutMs)
  }

  const answer = async (query: Query): Promise<Response> => {
    const { content, edns } = query
    if (content.kind === 'error') return emptyResponse(content.rcode)
    if (edns && edns.version > 0) return emptyResponse('BADVERS')
    const longestFirst = options.listZones().toSorted((a, b) => b.length - a.length)
    const zone = longestFirst.find(candidate => isAtOrBelow(content.name, candidate))
    // Other classes, zones of other servers, and transfers.
    if (zone === undefined || !content.isClassIn || /^[AI]XFR$/.test(content.type)) return emptyResponse('REFUSED')

    const answers: RecordSet[] = []
    let name = content.name
    for (let hop = 0; ; hop += 1) {
      const found = resolve(zone, await boundedLookup(zone, name), { name, type: content.type })
      answers.push(...found.answers)
      // RFC 6604 section 3: the code is that of the last name of the chain.
      if (found.alias === undefined || hop === MAX_CHAIN_LENGTH) return { ...found, answers }
      if (answers.some(set => set.name === found.alias)) return { ...found, answers }
      name = found.alias
    }
  }

  return async (message, transport) => {
    const query = parseQuery(message)
    if (!query) return undefined
    const limit = transport === 'udp' ? toUdpLimit(query) : MAX_MESSAGE_SIZE
    try {
      const response = encodeResponse(query, await answer(query), limit)
      isFailing = false
      return response
    } catch (error) {
      if (!isFailing) onError(error)
      isFailing = true
      return encodeResponse(query, emptyResponse('SERVFAIL'), limit)
    }
  }
}
