import { redacted } from './common.ts'
import { withWhiteSpace } from './fields.ts'

/** The regions of the storage provider; case-sensitive. */
export const objectStorageRegions = ['fsn1', 'nbg1', 'hel1'] as const
export type ObjectStorageRegion = (typeof objectStorageRegions)[number]

export const isObjectStorageRegion = (region: string): region is ObjectStorageRegion =>
  objectStorageRegions.some(known => known === region)

export const regionRule = `The region must be one of ${objectStorageRegions.join(', ')}.`

/** An access key pair and the region to use it in. */
export interface ObjectStorageKeys {
  readonly region: ObjectStorageRegion
  readonly accessKey: string
  readonly secretKey: string
}

interface SecretRule {
  readonly name: string
  /** Characters. The maximum is ours: no provider issues keys of that length. */
  readonly minLength: number
  readonly maxLength: number
  /** Printable ASCII characters that it does not contain; default: none. */
  readonly excluded?: readonly string[]
}

/** A class without a look-ahead, which many languages lack: every character that is permitted, as ranges. */
const toClass = (excluded: readonly string[]): string => {
  const codes = excluded.map(character => character.charCodeAt(0)).toSorted((a, b) => a - b)
  const starts = [0x21, ...codes.map(code => code + 1)]
  const ends = [...codes.map(code => code - 1), 0x7e]
  return starts.map((start, i) => `\\x${start.toString(16)}-\\x${ends[i]?.toString(16)}`).join('')
}

const toPattern = ({ minLength, maxLength, excluded = [] }: SecretRule): RegExp =>
  withWhiteSpace(`[${toClass(excluded)}]{${minLength},${maxLength}}`)

/** Returns why trimmed text is not such a secret, as a sentence that quotes nothing of it; null: valid. */
const createSecretCheck =
  ({ name, minLength, maxLength, excluded = [] }: SecretRule) =>
  (secret: string): string | null => {
    if (secret === '') return `The ${name} is required.`
    if (secret === redacted) return `The ${name} reads ${redacted}: stored records contain no secrets; enter it again.`
    if (secret.length < minLength) return `The ${name} is too short: it has at least ${minLength} characters.`
    if (secret.length > maxLength) return `The ${name} is too long: it has at most ${maxLength} characters.`
    if (!/^[\x21-\x7e]+$/.test(secret)) return `The ${name} must be printable ASCII characters without a space.`
    if (!excluded.some(character => secret.includes(character))) return null
    return `The ${name} must not contain ${excluded.map(each => `"${each}"`).join(' or ')}: check that it is not the secret key.`
  }

/** It is part of a list in the header of a signed request (AWS Signature Version 4), in which these separate. */
const accessKeyRule = { name: 'access key', minLength: 16, maxLength: 128, excluded: [',', '/'] } as const
export const ACCESS_KEY = toPattern(accessKeyRule)
export const accessKeyError = createSecretCheck(accessKeyRule)

const secretKeyRule = { name: 'secret key', minLength: 32, maxLength: 256 }
export const SECRET_KEY = toPattern(secretKeyRule)
export const secretKeyError = createSecretCheck(secretKeyRule)

/** An API token of a provider, whose format is unknown. */
const tokenRule = { name: 'token', minLength: 1, maxLength: 4_096 }
export const TOKEN = toPattern(tokenRule)
export const tokenError = createSecretCheck(tokenRule)
