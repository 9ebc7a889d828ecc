import { asciiLowerCase } from '@pool/contract'

export type BucketNameResult =
  | { readonly kind: 'bucket'; readonly name: string }
  /** `reason`: one or two sentences for the caller. */
  | { readonly kind: 'invalid'; readonly reason: string }

/** Amazon S3 User Guide, "General purpose bucket naming rules". */
const MIN_LENGTH = 3
const MAX_LENGTH = 63
/** S3 also reserves the suffix `.mrap`, which a name without dots cannot have. */
const RESERVED_PREFIXES = ['xn--', 'sthree-', 'amzn-s3-demo-']
const RESERVED_SUFFIXES = ['-s3alias', '--ol-s3', '--x-s3', '--table-s3']

const findError = (name: string, fqdn: string): string | null => {
  if (name.length < MIN_LENGTH || name.length > MAX_LENGTH) {
    const excess = name.length - MAX_LENGTH
    const advice = excess > 0 ? ` Choose a name that is shorter by ${excess}.` : ''
    return `The bucket name for ${fqdn} would have ${name.length} characters; ${MIN_LENGTH} to ${MAX_LENGTH} are allowed.${advice}`
  }
  if (!/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])$/.test(name)) {
    return `The bucket name for ${fqdn} would be invalid: only a-z, 0-9 and "-" are allowed, with a letter or digit at both ends.`
  }
  const reserved =
    RESERVED_PREFIXES.find(prefix => name.startsWith(prefix)) ?? RESERVED_SUFFIXES.find(suffix => name.endsWith(suffix))
  return reserved ? `The bucket name for ${fqdn} would be ${name}, but S3 reserves "${reserved}".` : null
}

/**
 * The bucket name of a deployment: the prefix and the FQDN, with hyphens instead of dots. Two FQDNs can have the same bucket
 * name (`a-b.c.io` and `a.b.c.io`); the database assigns a bucket to one FQDN only.
 */
export const toBucketName = (prefix: string, fqdn: string): BucketNameResult => {
  const name = `${prefix}-${asciiLowerCase(fqdn).replaceAll('.', '-')}`
  const reason = findError(name, fqdn)
  return reason === null ? { kind: 'bucket', name } : { kind: 'invalid', reason }
}
