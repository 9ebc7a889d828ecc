import { createHmac, timingSafeEqual } from 'node:crypto'
import { CLASSES, parseMessage } from '../../wire/message.ts'
import { encodeName, FormatError, readName, TYPES } from '../../wire/rdata.ts'

/** Those of RFC 8945 section 6 that are recommended or optional, and SHA-224: hash and octets of the MAC. */
const ALGORITHMS = {
  'hmac-sha256': ['sha256', 32],
  'hmac-sha224': ['sha224', 28],
  'hmac-sha384': ['sha384', 48],
  'hmac-sha512': ['sha512', 64],
} as const
export type TsigAlgorithm = keyof typeof ALGORITHMS

/** Null: it is not accepted. RFC 8945 section 6 permits HMAC-MD5 and HMAC-SHA-1 for old servers only. */
export const parseTsigAlgorithm = (text: string): TsigAlgorithm | null =>
  (Object.keys(ALGORITHMS) as TsigAlgorithm[]).find(name => name === text.toLowerCase().replace(/\.$/, '')) ?? null

export interface TsigKey {
  /** `hmac-sha256` by default. */
  readonly algorithm?: TsigAlgorithm
  /** Lower case, without the trailing dot. */
  readonly name: string
  readonly secret: Buffer
}

/** Seconds that the clocks may differ (RFC 8945 section 10 recommends 300). */
export const FUDGE_SECONDS = 300
/** RFC 8945 section 5.3.1: a client must accept up to 99 unsigned messages between two signed ones. */
const MAX_UNSIGNED = 99
const TSIG_ERRORS = { BADSIG: 16, BADKEY: 17, BADTIME: 18, BADTRUNC: 22 } as const

const wireName = (name: string): Buffer => {
  const wire = encodeName(name.toLowerCase())
  if (!wire) throw new TypeError('the name of the TSIG key is not a domain name')
  return wire
}
const toAlgorithm = ({ algorithm = 'hmac-sha256' }: TsigKey): TsigAlgorithm => algorithm

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
const withLength = (octets: Buffer): Buffer[] => [uint16(octets.length), octets]
const classAndTtl = Buffer.concat([uint16(CLASSES.ANY), Buffer.alloc(4)])

interface Timers {
  /** Seconds since the epoch. */
  readonly signedAt: number
  readonly fudge: number
}

const encodeTimers = ({ signedAt, fudge }: Timers): Buffer[] => [uint48(signedAt), uint16(fudge)]

/** RFC 8945 section 4.3.3: the TSIG variables. */
const encodeVariables = (key: TsigKey, timers: Timers, error: number, other: Buffer): Buffer[] => [
  wireName(key.name),
  classAndTtl,
  wireName(toAlgorithm(key)),
  ...encodeTimers(timers),
  uint16(error),
  ...withLength(other),
]

const computeMac = (key: TsigKey, parts: readonly Buffer[]): Buffer => {
  const hmac = createHmac(ALGORITHMS[toAlgorithm(key)][0], key.secret)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/** Octets that signing adds to a message. */
export const toTsigSize = (key: TsigKey): number =>
  wireName(key.name).length + 10 + wireName(toAlgorithm(key)).length + 16 + ALGORITHMS[toAlgorithm(key)][1]

const withAdditionalCount = (message: Buffer, step: 1 | -1): Buffer => {
  const copy = Buffer.from(message)
  copy.writeUInt16BE(message.readUInt16BE(10) + step, 10)
  return copy
}

export interface Signed {
  readonly message: Buffer
  /** The MAC of the response covers it. */
  readonly mac: Buffer
}

/** Appends a TSIG record with the time `signedAt`, in seconds since the epoch (RFC 8945 sections 4.2 and 5.1). */
export const sign = (message: Buffer, key: TsigKey, signedAt: number): Signed => {
  const timers = { signedAt, fudge: FUDGE_SECONDS }
  const noOtherData = Buffer.alloc(0)
  const mac = computeMac(key, [message, ...encodeVariables(key, timers, 0, noOtherData)])
  const data = [
    wireName(toAlgorithm(key)),
    ...encodeTimers(timers),
    ...withLength(mac),
    message.subarray(0, 2),
    uint16(0),
    ...withLength(noOtherData),
  ]
  const record = [wireName(key.name), uint16(TYPES.TSIG), classAndTtl, ...withLength(Buffer.concat(data))]
  return { message: Buffer.concat([withAdditionalCount(message, 1), ...record]), mac }
}

/** The verification state of a response with several messages (RFC 8945 section 5.3.1). */
export interface Chain {
  readonly priorMac: Buffer
  readonly isFirst: boolean
  /** Messages since the last signed one. The next MAC covers them. */
  readonly unsigned: readonly Buffer[]
}

export const startChain = (requestMac: Buffer): Chain => ({ priorMac: requestMac, isFirst: true, unsigned: [] })

export type Verification =
  | { readonly kind: 'verified'; readonly chain: Chain }
  /** Do not use its content until a later message is verified. */
  | { readonly kind: 'pending'; readonly chain: Chain }
  | {
      readonly kind: 'rejected'
      readonly reason: string
      readonly isKeyDenied?: true
      readonly isUnsigned?: true
    }

const rejected = (reason: string): Verification => ({ kind: 'rejected', reason })
const unsigned: Verification = { kind: 'rejected', reason: 'its response is not signed', isUnsigned: true }

const describeClockDifference = (seconds: number): string =>
  `the clocks differ: the server's clock is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead'} (BADTIME)`

interface TsigRecord extends Timers {
  readonly name: string
  readonly algorithm: string
  readonly mac: Buffer
  readonly originalId: Buffer
  readonly error: number
  readonly other: Buffer
  /** Offset of the record in the message. */
  readonly at: number
}

/** RFC 8945 section 5.1: a message has at most one TSIG record, as its last record. */
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
  if (afterMac + 6 + otherLength !== data.length) throw new FormatError('its TSIG record is truncated')
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
 * Verifies the next message of a response, received at `now` (seconds since the epoch). Checks the key, the MAC and the
 * time in this order (RFC 8945 section 5.2). A truncated MAC is rejected.
 */
export const verify = (chain: Chain, message: Buffer, key: TsigKey, now: number): Verification => {
  const tsig = readTsig(message)
  if (!tsig) {
    if (chain.isFirst) return unsigned
    if (chain.unsigned.length >= MAX_UNSIGNED) return rejected('too many messages of its response are not signed')
    return { kind: 'pending', chain: { ...chain, unsigned: [...chain.unsigned, message] } }
  }
  if (tsig.mac.length === 0) {
    // RFC 8945 section 5.3.2: these two errors are unsigned, because there is no common key.
    if (tsig.error === TSIG_ERRORS.BADKEY) {
      const reason = `it does not know the TSIG key ${key.name}, or does not allow it to do this (BADKEY)`
      return { kind: 'rejected', reason, isKeyDenied: true }
    }
    if (tsig.error === TSIG_ERRORS.BADSIG)
      return rejected(`it has another secret for the TSIG key ${key.name} (BADSIG)`)
    return unsigned
  }
  if (tsig.name !== key.name || tsig.algorithm !== toAlgorithm(key))
    return rejected('its response is signed with another key or algorithm')

  const bare = withAdditionalCount(message.subarray(0, tsig.at), -1)
  tsig.originalId.copy(bare, 0)
  const closing = chain.isFirst ? encodeVariables(key, tsig, tsig.error, tsig.other) : encodeTimers(tsig)
  const mac = computeMac(key, [...withLength(chain.priorMac), ...chain.unsigned, bare, ...closing])
  if (mac.length !== tsig.mac.length || !timingSafeEqual(mac, tsig.mac))
    return rejected('the signature of its response is not valid')

  if (tsig.error === TSIG_ERRORS.BADTIME && tsig.other.length === 6)
    return rejected(describeClockDifference(tsig.other.readUIntBE(0, 6) - now))
  if (tsig.error !== 0) return rejected(`it rejects our signature (TSIG error ${tsig.error})`)
  if (Math.abs(tsig.signedAt - now) > tsig.fudge) return rejected(describeClockDifference(tsig.signedAt - now))
  return { kind: 'verified', chain: { priorMac: mac, isFirst: false, unsigned: [] } }
}
