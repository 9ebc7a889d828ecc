import { createHmac, timingSafeEqual } from 'node:crypto'
import { FormatError } from '../../wire/format-error.ts'
import { CLASSES, parseMessage, TYPES } from '../../wire/message.ts'
import { encodeName, readName } from '../../wire/name.ts'

export interface TsigKey {
  /** Lower case, without the trailing dot. */
  readonly name: string
  readonly secret: Buffer
}

/** Seconds that the clocks may differ (RFC 8945 section 10 recommends 300). */
export const FUDGE_SECONDS = 300
/** RFC 8945 section 5.3.1: a client must take up to 99 unsigned messages between two signed ones. */
const MAX_UNSIGNED = 99
const errors = { BADSIG: 16, BADKEY: 17, BADTIME: 18, BADTRUNC: 22 } as const

const wireName = (name: string): Buffer => {
  const wire = encodeName(name.toLowerCase())
  if (!wire) throw new TypeError('the name of the TSIG key is not a domain name')
  return wire
}
const algorithm = wireName('hmac-sha256')

const uint16 = (value: number): Buffer => {
  const octets = Buffer.alloc(2)
  octets.writeUInt16BE(value)
  return octets
}
const uint48 = (value: number): Buffer => {
  const octets = Buffer.alloc(6)
  octets.writeUIntBE(value, 0, 6)
  return octets
}
const sized = (octets: Buffer): Buffer[] => [uint16(octets.length), octets]
const classAndTtl = Buffer.concat([uint16(CLASSES.ANY), Buffer.alloc(4)])

interface Timers {
  /** Seconds since 1970. */
  readonly signedAt: number
  readonly fudge: number
}

const encodeTimers = ({ signedAt, fudge }: Timers): Buffer[] => [uint48(signedAt), uint16(fudge)]

/** RFC 8945 section 4.3.3: the TSIG variables. */
const encodeVariables = (key: TsigKey, timers: Timers, error: number, other: Buffer): Buffer[] => [
  wireName(key.name),
  classAndTtl,
  algorithm,
  ...encodeTimers(timers),
  uint16(error),
  ...sized(other),
]

const computeMac = (key: TsigKey, parts: readonly Buffer[]): Buffer => {
  const hmac = createHmac('sha256', key.secret)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/** Octets that signing adds to a message. */
export const tsigSize = (key: TsigKey): number => wireName(key.name).length + 10 + algorithm.length + 16 + 32

const withAdditionalCount = (message: Buffer, step: 1 | -1): Buffer => {
  const copy = Buffer.from(message)
  copy.writeUInt16BE(message.readUInt16BE(10) + step, 10)
  return copy
}

export interface Signed {
  readonly message: Buffer
  /** The answer's signature covers it. */
  readonly mac: Buffer
}

/** `message` with a TSIG record for `signedAt`, in seconds since 1970 (RFC 8945 sections 4.2 and 5.1). */
export const sign = (message: Buffer, key: TsigKey, signedAt: number): Signed => {
  const timers = { signedAt, fudge: FUDGE_SECONDS }
  const none = Buffer.alloc(0)
  const mac = computeMac(key, [message, ...encodeVariables(key, timers, 0, none)])
  const data = [algorithm, ...encodeTimers(timers), ...sized(mac), message.subarray(0, 2), uint16(0), ...sized(none)]
  const record = [wireName(key.name), uint16(TYPES.TSIG), classAndTtl, ...sized(Buffer.concat(data))]
  return { message: Buffer.concat([withAdditionalCount(message, 1), ...record]), mac }
}

/** How far the answers to one request are verified (RFC 8945 section 5.3.1). */
export interface Chain {
  readonly priorMac: Buffer
  readonly isFirst: boolean
  /** Messages since the last signed one, which the next signature covers. */
  readonly unsigned: readonly Buffer[]
}

export const startChain = (requestMac: Buffer): Chain => ({ priorMac: requestMac, isFirst: true, unsigned: [] })

export type Verification =
  | { readonly kind: 'verified'; readonly chain: Chain }
  /** Nothing in it may be believed until a later message is verified. */
  | { readonly kind: 'pending'; readonly chain: Chain }
  | {
      readonly kind: 'rejected'
      readonly reason: string
      readonly isKeyDenied?: true
      readonly isUnsigned?: true
    }

const rejected = (reason: string): Verification => ({ kind: 'rejected', reason })
const unsigned: Verification = { kind: 'rejected', reason: 'its answer is not signed', isUnsigned: true }

const ahead = (seconds: number): string =>
  `the clocks differ: the server's is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead'} (BADTIME)`

interface TsigRecord extends Timers {
  readonly name: string
  readonly algorithm: string
  readonly mac: Buffer
  readonly originalId: Buffer
  readonly error: number
  readonly other: Buffer
  /** Where it begins in the message. */
  readonly at: number
}

/** RFC 8945 section 5.1: one at most, and the last record of the message. */
const readTsig = (message: Buffer): TsigRecord | undefined => {
  const { answers, authority, additional } = parseMessage(message)
  const found = [...answers, ...authority, ...additional].filter(record => record.type === TYPES.TSIG)
  const [record, second] = found
  if (!record) return undefined
  if (second || additional.at(-1) !== record || record.class !== CLASSES.ANY)
    throw new FormatError('it has a TSIG record in the wrong place')
  const { dataAt, dataLength, name, at } = record
  const data = message.subarray(0, dataAt + dataLength)
  const { name: algorithmName, next } = readName(data, dataAt)
  const macLength = data.length >= next + 10 ? data.readUInt16BE(next + 8) : data.length
  const afterMac = next + 10 + macLength
  const otherLength = data.length >= afterMac + 6 ? data.readUInt16BE(afterMac + 4) : data.length
  if (afterMac + 6 + otherLength !== data.length) throw new FormatError('its TSIG record is cut')
  return {
    name: name.toLowerCase(),
    algorithm: algorithmName.toLowerCase(),
    signedAt: data.readUIntBE(next, 6),
    fudge: data.readUInt16BE(next + 6),
    mac: data.subarray(next + 10, afterMac),
    originalId: data.subarray(afterMac, afterMac + 2),
    error: data.readUInt16BE(afterMac + 2),
    other: data.subarray(afterMac + 6),
    at,
  }
}

/**
 * One message of an answer, received at `now` (seconds since 1970), after those of `chain`. Key, signature and time are
 * looked at in this order (RFC 8945 section 5.2); a shortened signature is not taken.
 */
export const verify = (chain: Chain, message: Buffer, key: TsigKey, now: number): Verification => {
  const tsig = readTsig(message)
  if (!tsig) {
    if (chain.isFirst) return unsigned
    if (chain.unsigned.length >= MAX_UNSIGNED) return rejected('too many messages of its answer are not signed')
    return { kind: 'pending', chain: { ...chain, unsigned: [...chain.unsigned, message] } }
  }
  if (tsig.mac.length === 0) {
    // RFC 8945 section 5.3.2: these two come without a signature, as there is no key to sign with.
    if (tsig.error === errors.BADKEY) {
      const reason = `it does not know the TSIG key ${key.name}, or does not let it do this (BADKEY)`
      return { kind: 'rejected', reason, isKeyDenied: true }
    }
    if (tsig.error === errors.BADSIG) return rejected(`its secret of the TSIG key ${key.name} is another one (BADSIG)`)
    return unsigned
  }
  if (tsig.name !== key.name || tsig.algorithm !== 'hmac-sha256')
    return rejected('its answer is signed with another key or algorithm')

  const bare = withAdditionalCount(message.subarray(0, tsig.at), -1)
  tsig.originalId.copy(bare, 0)
  const closing = chain.isFirst ? encodeVariables(key, tsig, tsig.error, tsig.other) : encodeTimers(tsig)
  const mac = computeMac(key, [...sized(chain.priorMac), ...chain.unsigned, bare, ...closing])
  if (mac.length !== tsig.mac.length || !timingSafeEqual(mac, tsig.mac)) return rejected('its answer is signed wrongly')

  if (tsig.error === errors.BADTIME && tsig.other.length === 6)
    return rejected(ahead(tsig.other.readUIntBE(0, 6) - now))
  if (tsig.error !== 0) return rejected(`it does not take our signature (TSIG error ${tsig.error})`)
  if (Math.abs(tsig.signedAt - now) > tsig.fudge) return rejected(ahead(tsig.signedAt - now))
  return { kind: 'verified', chain: { priorMac: mac, isFirst: false, unsigned: [] } }
}
