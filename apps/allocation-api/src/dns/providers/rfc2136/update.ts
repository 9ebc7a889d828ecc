import { type BatchResult, bisect } from '../../bisect.ts'
import { toRcodeName } from '../../wire/message.ts'
import { exchangeSigned, KeyRejectedError, ServerError, type SignedPeer, toServerError } from './connection.ts'
import { toTsigSize } from './tsig.ts'
import {
  buildUpdate,
  chunkUpdates,
  encodeEffectCheck,
  encodeUpdate,
  maxUpdateSize,
  type NameUpdate,
} from './update-message.ts'

const REJECTION_REASONS: Readonly<Record<string, string>> = {
  YXRRSET: 'the name has records that the last read did not return, or that conflict with a CNAME (YXRRSET)',
  NOTZONE: 'the name is not in this zone (NOTZONE)',
  REFUSED: 'the server does not allow this key to change it, or does not accept such a record (REFUSED)',
  BADKEY: 'the server does not allow this key to change it (BADKEY)',
}

/** The server does not have this zone, or is not its primary (RFC 2136 section 3.1). Every other update fails too. */
const ZONE_REJECTIONS = new Set(['NOTAUTH', 'NOTIMP'])
/** The key may not update this zone, or not this name. */
const KEY_REJECTIONS = new Set(['REFUSED', 'BADKEY'])

/**
 * Updates in one message. PowerDNS is so slow at replacing an RRset in a large zone that a full
 * message would exceed the timeout of a call, at each retry again.
 */
const MAX_UPDATES = 100
/** Rejections per message after which the bisection stops. Enough to find at least two faulty updates in a message. */
const MAX_REJECTIONS = 16

/**
 * Whether the server lets the key update names below the zone. The update deletes a record set that does not exist, so it
 * changes nothing, not even the serial (RFC 2136 sections 3.4.2.3 and 3.6). Throws a `ServerError` if it is not allowed.
 */
export const checkUpdate = async (
  peer: SignedPeer,
  zone: string,
  id: number,
): Promise<{ readonly kind: 'writable' }> => {
  const name = `_no-such-name.${zone}`
  const update = buildUpdate(name, [{ kind: 'delete', name, type: 'A' }], undefined)
  for await (const { message } of exchangeSigned(peer, encodeUpdate(id, zone, [update]))) {
    const rcode = toRcodeName(message.rcode)
    if (rcode !== 'NOERROR') throw toServerError('does not allow this key to update it', rcode)
    return { kind: 'writable' }
  }
  throw new ServerError('sent no response')
}

export interface UpdateResponse {
  readonly rejected: ReadonlyMap<NameUpdate, string>
  readonly skipped: readonly NameUpdate[]
}

/** Every update that the outcome does not contain was applied. */
export const sendUpdates = async (
  peer: SignedPeer,
  zone: string,
  updates: readonly NameUpdate[],
  nextId: () => number,
): Promise<UpdateResponse> => {
  /** BADKEY is not signed. A forged one has no more effect than a closed connection: no update counts as applied. */
  const requestRcode = async (request: Buffer): Promise<string> => {
    for await (const { message } of exchangeSigned(peer, request)) return toRcodeName(message.rcode)
    throw new ServerError('sent no response')
  }
  const submit = (batch: readonly NameUpdate[]): Promise<string> =>
    requestRcode(encodeUpdate(nextId(), zone, batch)).catch((error: unknown) => {
      if (error instanceof KeyRejectedError && batch.length > 0) return 'BADKEY'
      throw error
    })

  /**
   * Calls `attempt` for each batch, and bisects the batches that it rejects. If the search ends early and no batch was
   * accepted, the cause is not an update: the result is a `ServerError` with the text `allRejected`.
   */
  const search = async (
    batches: readonly (readonly NameUpdate[])[],
    attempt: (batch: readonly NameUpdate[]) => Promise<{ readonly rcode: string; readonly reason?: string }>,
    allRejected: string,
  ): Promise<UpdateResponse> => {
    let isAnyAccepted = false
    let lastRcode = ''
    const run = async (batch: readonly NameUpdate[]): Promise<BatchResult<NameUpdate, never>> => {
      const { rcode, reason } = await attempt(batch)
      if (reason === undefined) isAnyAccepted = true
      else lastRcode = rcode
      return reason === undefined ? { kind: 'accepted' } : { kind: 'rejected', reason }
    }
    const limits = { maxRejections: MAX_REJECTIONS * batches.length, now: () => 1_000 * peer.now() }
    const result = await bisect(batches, run, limits)
    if (result.kind === 'failed') return result.failure
    if (result.skipped.length > 0 && !isAnyAccepted) throw toServerError(allRejected, lastRcode)
    return result
  }

  const limit = maxUpdateSize(zone, toTsigSize(peer.key))
  let mayUpdate = false
  const updateOutcome = await search(
    chunkUpdates(updates, limit, MAX_UPDATES),
    async batch => {
      const rcode = await submit(batch)
      if (ZONE_REJECTIONS.has(rcode)) throw toServerError('does not accept updates of it', rcode)
      if (KEY_REJECTIONS.has(rcode) && !mayUpdate) {
        // An empty update distinguishes a key without any permission from one with permission for some names.
        const emptyUpdateRcode = await submit([])
        if (emptyUpdateRcode !== 'NOERROR')
          throw toServerError('does not allow this key to update it', emptyUpdateRcode)
        mayUpdate = true
      }
      mayUpdate ||= rcode === 'NOERROR'
      return rcode === 'NOERROR'
        ? { rcode }
        : { rcode, reason: REJECTION_REASONS[rcode] ?? `the server rejected it (${rcode})` }
    },
    'rejects every update of it',
  )

  // RFC 2136 section 3.4.2.2: a server silently ignores some updates, such as data beside a CNAME, and reports success.
  const skipped = new Set(updateOutcome.skipped)
  const checkOutcome = await search(
    chunkUpdates(
      updates.filter(update => !updateOutcome.rejected.has(update) && !skipped.has(update)),
      limit,
    ),
    async batch => {
      const rcode = await requestRcode(encodeEffectCheck(nextId(), zone, batch))
      if (rcode === 'NOERROR') return { rcode }
      if (rcode !== 'NXRRSET' && rcode !== 'YXRRSET')
        throw toServerError('does not show whether it applied an update', rcode)
      const reason = `the server ignored it, for example because of a CNAME at this name, or another writer reverted it (${rcode})`
      return { rcode, reason }
    },
    'ignores every update of it',
  )
  return {
    rejected: new Map([...updateOutcome.rejected, ...checkOutcome.rejected]),
    skipped: [...updateOutcome.skipped, ...checkOutcome.skipped],
  }
}
