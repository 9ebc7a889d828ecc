import { redacted } from './text.ts'

/** The regions of the storage provider; case-sensitive. */
export const objectStorageRegions = ['fsn1', 'nbg1', 'hel1'] as const
export type ObjectStorageRegion = (typeof objectStorageRegions)[number]

export const isObjectStorageRegion = (region: string): region is ObjectStorageRegion =>
  objectStorageRegions.some(known => known === region)

export const regionRule = `The region must be one of ${objectStorageRegions.join(', ')}.`

/** Keys, and the region that they are to be used in. */
export interface ObjectStorageKeys {
  readonly region: ObjectStorageRegion
  readonly accessKey: string
  readonly secretKey: string
}

interface KeyRule {
  readonly name: string
  readonly least: number
  /** Not the provider's: what no key of any provider comes near. */
  readonly most: number
}

/** Why trimmed text cannot be such a key, as a sentence that quotes nothing of it; null: it may be one. */
const keyFault =
  ({ name, least, most }: KeyRule) =>
  (key: string): string | null => {
    if (key === '') return `The ${name} is required.`
    if (key === redacted) return `The ${name} reads ${redacted}: a stored record holds no keys, enter it again.`
    if (key.length < least) return `The ${name} is too short: it has at least ${least} characters.`
    if (key.length > most) return `The ${name} is too long: it has at most ${most} characters.`
    return /^[\x21-\x7e]+$/.test(key) ? null : `The ${name} must be printable ASCII characters without a space.`
  }

export const accessKeyFault = keyFault({ name: 'access key', least: 16, most: 128 })
export const secretKeyFault = keyFault({ name: 'secret key', least: 32, most: 256 })
/** An API token of a provider, of which no shape is known. */
export const tokenFault = keyFault({ name: 'token', least: 1, most: 4_096 })
