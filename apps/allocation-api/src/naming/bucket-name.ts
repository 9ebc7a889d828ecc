import { asciiLowerCase } from '@pool/contract'

export type BucketDecision =
  | { readonly kind: 'bucket'; readonly name: string }
  /** `reason`: a sentence that states the limit and what the name has. */
  | { readonly kind: 'refused'; readonly reason: string }

/** S3's limits, in characters (Amazon S3 User Guide, "General purpose bucket naming rules"). */
const SHORTEST = 3
const LONGEST = 63

/** What S3 keeps for itself. It keeps `.mrap` too; a name without dots cannot end in it. */
const reservedBeginnings = ['xn--', 'sthree-', 'amzn-s3-demo-']
const reservedEndings = ['-s3alias', '--ol-s3', '--x-s3', '--table-s3']

const faultOf = (name: string, fqdn: string): string | null => {
  if (name.length < SHORTEST || name.length > LONGEST) {
    const excess = name.length - LONGEST
    const advice = excess > 0 ? ` Choose a name that is shorter by ${excess}.` : ''
    return `The bucket of ${fqdn} would have a name of ${name.length} characters, and ${SHORTEST} to ${LONGEST} are allowed.${advice}`
  }
  if (!/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])$/.test(name)) {
    return `The bucket of ${fqdn} could have only a-z, 0-9 and "-" in its name, and a letter or digit at both ends.`
  }
  const reserved =
    reservedBeginnings.find(beginning => name.startsWith(beginning)) ??
    reservedEndings.find(ending => name.endsWith(ending))
  return reserved ? `The bucket of ${fqdn} would be named ${name}, and "${reserved}" there is reserved by S3.` : null
}

/**
 * The bucket of a deployment: the prefix and its FQDN with every dot as a hyphen. Two FQDNs can give one bucket
 * (`a-b.c.io` and `a.b.c.io`): that a bucket belongs to one deployment is for the database to hold.
 */
export const toBucketName = (prefix: string, fqdn: string): BucketDecision => {
  const name = `${prefix}-${asciiLowerCase(fqdn).replaceAll('.', '-')}`
  const reason = faultOf(name, fqdn)
  return reason === null ? { kind: 'bucket', name } : { kind: 'refused', reason }
}
