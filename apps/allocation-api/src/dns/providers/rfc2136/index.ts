import { randomInt } from 'node:crypto'
import { isHostName } from '@pool/contract'
import type { EnvReader } from '@pool/runtime/service/env'
import type { Unavailable, WantedRecords, ZoneCheck, ZonePart } from '../../domain/result.ts'
import { createNameFilter, isAtOrBelow, recordKey, toApplyResult, toOwnerName } from '../../domain/rrset.ts'
import type { DnsProvider, ReadProvider, ZoneOf } from '../../provider.ts'
import { collectWanted } from '../../read-zone.ts'
import { encodeName, FormatError } from '../../wire/rdata.ts'
import { findApexes } from './apexes.ts'
import { transferZone } from './axfr.ts'
import { openConnection, ServerError, type SignedPeer } from './connection.ts'
import { parseTsigAlgorithm, type TsigAlgorithm, type TsigKey, toTsigSize } from './tsig.ts'
import { buildUpdates, checkUpdate, maxUpdateSize, sendUpdates } from './update.ts'

export interface Rfc2136Options {
  /** The primary server of the zones. */
  readonly server: { readonly host: string; readonly port: number }
  /** RFC 8945. `secret` is in base64. */
  readonly tsig: { readonly name: string; readonly secret: string; readonly algorithm?: TsigAlgorithm }
  /** Milliseconds since the epoch, for the signatures; default: `Date.now`. */
  readonly now?: () => number
  /** Default: each pool is a zone. */
  readonly zoneOf?: ZoneOf
}

/**
 * A zone on a self-hosted name server: read completely by AXFR (RFC 5936), changed by UPDATE (RFC 2136), both over TCP
 * and signed with one TSIG key (RFC 8945), which must be allowed to transfer and update the zone.
 *
 * A server may still apply an update that timed out here. It applies the updates of a zone in the order in which it
 * receives them, so the next sync comes after it, and it rejects a message that was signed more than 300 s ago (RFC 8945
 * section 5.2.3). Prerequisites on the values of the last read would fence such an update completely, but a server that
 * compares some value differently would then reject that name indefinitely. Only the prerequisite that a record set does
 * not exist is used.
 */
export const createRfc2136Provider = ({
  server,
  tsig,
  now = Date.now,
  zoneOf = pool => pool,
}: Rfc2136Options): DnsProvider => {
  const key: TsigKey = {
    name: tsig.name.toLowerCase().replace(/\.$/, ''),
    secret: Buffer.from(tsig.secret, 'base64'),
    algorithm: tsig.algorithm ?? 'hmac-sha256',
  }
  if (!encodeName(key.name)) throw new TypeError('the name of the TSIG key is not a domain name')
  if (key.secret.length === 0) throw new TypeError('the secret of the TSIG key is not base64')
  const nextId = () => randomInt(65_536)
  const closing = new AbortController()
  /** By pool: the keys of the record sets that the last read returned, and what was wanted. Each is used for one apply. */
  const lastReads = new Map<string, { readonly wanted: WantedRecords; readonly present: ReadonlySet<string> }>()

  const toUnavailable = (zone: string, error: unknown): Unavailable => {
    if (error instanceof ServerError)
      return {
        kind: 'unavailable',
        reason: `The DNS server of the zone ${zone}: ${error.message}.`,
        ...(error.affectsZoneOnly ? { scope: 'zone' } : {}),
        ...(error.isTransient ? { isTransient: true } : {}),
      }
    // One odd record is enough for it, so the other zones continue.
    if (error instanceof FormatError)
      return {
        kind: 'unavailable',
        reason: `The DNS server of the zone ${zone} sent a malformed DNS message: ${error.message}.`,
        scope: 'zone',
      }
    throw error
  }

  const openPeer = (signal: AbortSignal): SignedPeer => ({
    connection: openConnection(server, AbortSignal.any([signal, closing.signal])),
    key,
    now: () => Math.floor(now() / 1_000),
  })

  const withConnection = async <T>(
    zone: string,
    signal: AbortSignal,
    work: (peer: SignedPeer) => Promise<T>,
  ): Promise<T | Unavailable> => {
    const peer = openPeer(signal)
    try {
      return await work(peer)
    } catch (error) {
      return toUnavailable(zone, error)
    } finally {
      peer.connection.close()
    }
  }

  const readZone = async function* (zone: string, signal: AbortSignal): AsyncGenerator<ZonePart | Unavailable, void> {
    const peer = openPeer(signal)
    try {
      yield* transferZone(peer, zone, nextId())
    } catch (error) {
      yield toUnavailable(zone, error)
    } finally {
      peer.connection.close()
    }
  }

  return {
    readZone: (pool, signal) => readZone(zoneOf(pool), signal),

    hasZone: (name, signal) =>
      withConnection(name, signal, async peer => (await findApexes(peer, [name], nextId())).length > 0),

    findZones: (pool, names, signal, onProgress) =>
      names.length === 0
        ? Promise.resolve({ kind: 'found', zones: [] })
        : withConnection(zoneOf(pool), signal, async peer => ({
            kind: 'found' as const,
            zones: await findApexes(peer, names, nextId(), onProgress),
          })),

    read: async (pool, wanted, signal, onProgress) => {
      lastReads.delete(pool)
      const result = await collectWanted(readZone(zoneOf(pool), signal), wanted, onProgress)
      if (result.kind === 'read')
        lastReads.set(pool, {
          wanted: result.isFullZone ? { names: [], branches: [pool] } : wanted,
          present: new Set(result.records.map(recordKey)),
        })
      return result
    },

    apply: async (pool, changes, signal) => {
      const zone = zoneOf(pool)
      const last = lastReads.get(pool)
      lastReads.delete(pool)
      const wasRead = createNameFilter(last?.wanted ?? { names: [], branches: [] })
      const names = changes.map(toOwnerName).filter(name => isAtOrBelow(name, pool))
      const present = names.every(wasRead) ? last?.present : undefined
      const { updates, rejected } = buildUpdates(pool, changes, {
        present,
        limit: maxUpdateSize(zone, toTsigSize(key)),
      })
      if (updates.length === 0) return toApplyResult(rejected, [])
      return withConnection(zone, signal, async peer => {
        const outcome = await sendUpdates(peer, zone, updates, nextId)
        const byServer = Array.from(outcome.rejected, ([{ name }, reason]) => [name, reason] as const)
        return toApplyResult(
          new Map([...rejected, ...byServer]),
          outcome.skipped.map(({ name }) => name),
        )
      })
    },

    checkZone: async (pool, signal) => {
      const zone = zoneOf(pool)
      const unusable = (reason: string): ZoneCheck => ({
        kind: 'unusable',
        reason,
        advice: `check that DNSPROVIDER_RFC2136_HOST and _PORT lead to the primary of ${zone}, and that it lets the TSIG key transfer and update the zone`,
      })
      for await (const part of readZone(zone, signal)) {
        if (part.kind === 'unavailable') return unusable(part.reason)
        // The first message shows that the transfer is allowed.
        break
      }
      const result = await withConnection(zone, signal, peer =>
        checkUpdate(peer, zone, `_no-such-name.${pool}`, nextId()),
      )
      return result.kind === 'unavailable' ? unusable(result.reason) : result
    },

    close: async () => {
      closing.abort()
    },
  }
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const ALGORITHM = 'DNSPROVIDER_RFC2136_TSIG_ALGORITHM'

export const readRfc2136Provider: ReadProvider = (read: EnvReader) => {
  const host = read.required('DNSPROVIDER_RFC2136_HOST', 'the name or address of the primary server')
  const port = read.integer('DNSPROVIDER_RFC2136_PORT', 53, { min: 1, max: 65_535 })
  const name = read
    .required('DNSPROVIDER_RFC2136_TSIG_NAME', 'the name of the TSIG key')
    .toLowerCase()
    .replace(/\.$/, '')
  if (name && !isHostName(`key.${name}`)) read.addIssue('DNSPROVIDER_RFC2136_TSIG_NAME', 'must be a domain name')
  const secret = read.required('DNSPROVIDER_RFC2136_TSIG_SECRET', 'the secret of the TSIG key, in base64')
  if (!BASE64.test(secret)) read.addIssue('DNSPROVIDER_RFC2136_TSIG_SECRET', 'must be base64')
  const algorithm = parseTsigAlgorithm(read.text(ALGORITHM) ?? 'hmac-sha256')
  if (!algorithm) {
    read.addIssue(
      ALGORITHM,
      'must be hmac-sha256, hmac-sha224, hmac-sha384 or hmac-sha512; a key with MD5 or SHA-1 is too weak',
    )
  }
  const options = { server: { host, port }, tsig: { name, secret, algorithm: algorithm ?? 'hmac-sha256' } }
  return async ({ zoneOf }) => ({
    provider: createRfc2136Provider({ ...options, zoneOf }),
    info: { server: options.server },
  })
}
