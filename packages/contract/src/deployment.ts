import * as z from 'zod'
import { cursor, limit } from './allocation.ts'
import { type FieldFault, firstViolation, problem, rule, violation } from './allocation-problem.ts'
import { isOneLine, isPlainLine, TRIMMED_LINE, timestamp, trim, WITHOUT_NULL } from './common.ts'
import {
  asciiLowerCase,
  canonicalName,
  createFqdn,
  DNS_LABEL,
  HOST_NAME,
  isDnsLabel,
  isHostName,
  LABEL,
  withWhiteSpace,
} from './fields.ts'
import {
  ACCESS_KEY,
  accessKeyError,
  objectStorageRegions,
  regionRule,
  SECRET_KEY,
  secretKeyError,
} from './object-storage-credentials.ts'

/** Room for an RSA key of 16384 bits and a long comment. */
const MAX_KEY_BYTES = 8_192
/** Smaller RSA keys are not secure (NIST SP 800-131A). */
const MIN_RSA_BITS = 2_048
/** OpenSSL accepts no larger RSA key. */
const MAX_RSA_BITS = 16_384

type Fields = readonly Uint8Array[]

/**
 * Splits the wire form of a public key into fields: a length of four octets, then the octets (RFC 4251 section 5,
 * `string` and `mpint` alike). Null if the octets do not end with a field.
 */
const parseFields = (octets: Uint8Array): Fields | null => {
  const view = new DataView(octets.buffer, octets.byteOffset, octets.byteLength)
  const fields: Uint8Array[] = []
  for (let at = 0; at < octets.length; ) {
    if (octets.length - at < 4) return null
    const end = at + 4 + view.getUint32(at)
    if (end > octets.length) return null
    fields.push(octets.subarray(at + 4, end))
    at = end
  }
  return fields
}

/** Bits of a positive `mpint` in its shortest form; 0 for other octets. */
const countBits = (mpint: Uint8Array): number => {
  const [first = 0, second = 0] = mpint
  const isNegative = first >= 0x80
  const isPadded = first === 0 && second < 0x80
  if (isNegative || isPadded) return 0
  const length = first === 0 ? mpint.length - 1 : mpint.length
  return length * 8 - (Math.clz32(first === 0 ? second : first) - 24)
}

const isOdd = (mpint: Uint8Array): boolean => ((mpint.at(-1) ?? 0) & 1) === 1

/** An uncompressed point (SEC 1 section 2.3.3), the only form that OpenSSH accepts. */
const isPoint = (octets: Uint8Array, length: number): boolean => octets.length === length && octets[0] === 4

const toText = (octets: Uint8Array | undefined): string => String.fromCharCode(...(octets ?? []))

type WireFormatError = 'damaged' | { readonly rsaBits: number }
/** Validates the fields after the type. Null: valid. */
type FieldRule = (fields: Fields) => WireFormatError | null

const damagedUnless = (isValid: boolean) => (isValid ? null : 'damaged')
const hasFields = (fields: Fields, count: number): boolean =>
  fields.length === count && fields.every(field => field.length > 0)

const ecdsa =
  (curve: string, pointLength: number, fieldCount: number): FieldRule =>
  fields => {
    const [name, point] = fields
    const hasPoint = hasFields(fields, fieldCount) && point !== undefined && isPoint(point, pointLength)
    return damagedUnless(hasPoint && toText(name) === curve)
  }

const ed25519 =
  (fieldCount: number): FieldRule =>
  fields =>
    damagedUnless(hasFields(fields, fieldCount) && fields[0]?.length === 32)

const rsa: FieldRule = fields => {
  const [exponent, modulus] = fields
  if (!hasFields(fields, 2) || !exponent || !modulus) return 'damaged'
  const [exponentBits, bits] = [countBits(exponent), countBits(modulus)]
  if (exponentBits < 2 || !isOdd(exponent) || bits === 0 || !isOdd(modulus) || bits > MAX_RSA_BITS) return 'damaged'
  return bits < MIN_RSA_BITS ? { rsaBits: bits } : null
}

/** RFC 4253 section 6.6, RFC 5656, RFC 8709; `sk-` types: OpenSSH's PROTOCOL.u2f, which appends the application. */
const fieldRules: ReadonlyMap<string, FieldRule> = new Map([
  ['ssh-ed25519', ed25519(1)],
  ['ecdsa-sha2-nistp256', ecdsa('nistp256', 65, 2)],
  ['ecdsa-sha2-nistp384', ecdsa('nistp384', 97, 2)],
  ['ecdsa-sha2-nistp521', ecdsa('nistp521', 133, 2)],
  ['ssh-rsa', rsa],
  ['sk-ssh-ed25519@openssh.com', ed25519(2)],
  ['sk-ecdsa-sha2-nistp256@openssh.com', ecdsa('nistp256', 65, 3)],
])

const sshKeyTypes: readonly string[] = [...fieldRules.keys()]

/** The type, base64 and an optional comment without control characters. */
const SSH_KEY = withWhiteSpace(
  `(?:${sshKeyTypes.join('|').replaceAll('.', '\\.')})[ \\t]+[A-Za-z0-9+/]+={0,2}(?:[ \\t]+${TRIMMED_LINE})?`,
)

const findWireFormatError = (type: string, octets: Uint8Array): WireFormatError | null => {
  const [name, ...fields] = parseFields(octets) ?? []
  return toText(name) === type ? (fieldRules.get(type)?.(fields) ?? null) : 'damaged'
}

const lineParts = /^(\S+)[ \t]+(\S+)(?:[ \t]+(.*))?$/s

/** The trimmed line with one space between type, base64 and comment. */
export const canonicalSshKey = (text: string): string => {
  const [, type = '', base64 = '', comment = ''] = lineParts.exec(text.trim()) ?? []
  return type === '' ? text.trim() : [type, base64, comment].filter(part => part !== '').join(' ')
}

/** Decodes base64 as OpenSSH writes it: padded, no other characters, no unused bits (RFC 4648 section 3.5). */
const decodeBase64 = (base64: string): Uint8Array | null => {
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return null
  const binary = atob(base64)
  return btoa(binary) === base64 ? Uint8Array.from(binary, letter => letter.charCodeAt(0)) : null
}

const sshKeyRule =
  'sshPublicKey is required: one line as in ~/.ssh/id_ed25519.pub, with type, base64 and an optional comment.'

/**
 * Why a host should not accept the line as a public key, as a sentence that quotes nothing of it; null: valid. Only the
 * form and the size of the numbers are checked, so a well-formed weak key is not detected.
 */
export const sshKeyError = (line: string): string | null => {
  if (/PRIVATE KEY/.test(line)) {
    return 'sshPublicKey is a private key: send the public key (the .pub file), and rotate this key, because it has been disclosed.'
  }
  if (new TextEncoder().encode(line).length > MAX_KEY_BYTES) return 'sshPublicKey must not be longer than 8 KiB.'
  const [, type, base64 = '', comment = ''] = lineParts.exec(line) ?? []
  if (type === undefined) return sshKeyRule
  if (type === 'ssh-dss') return 'sshPublicKey is a DSA key, which OpenSSH no longer supports: send an Ed25519 key.'
  if (!sshKeyTypes.includes(type)) return `sshPublicKey must begin with its type, one of ${sshKeyTypes.join(', ')}.`
  const octets = decodeBase64(base64)
  const error = octets ? findWireFormatError(type, octets) : 'damaged'
  if (error === 'damaged') return `sshPublicKey is damaged: its base64 must contain exactly one ${type} key.`
  if (error) return `sshPublicKey is an RSA key of ${error.rsaBits} bits: send one of 2048 or more, or an Ed25519 key.`
  return isOneLine(comment) ? null : 'sshPublicKey must be one line without control characters.'
}

/**
 * Some letters and symbols are invisible: the Hangul fillers are letters (Unicode UAX 44, Default_Ignorable_Code_Point),
 * and the Braille pattern without dots is a symbol.
 */
const VISIBLE_CHARACTER = /(?![\p{Default_Ignorable_Code_Point}\u2800])[\p{L}\p{N}\p{P}\p{S}]/u

/** 1 to 100 characters of any script, at least one of them visible. */
export const isOrgName = (text: string): boolean =>
  [...text].length <= 100 && isPlainLine(text) && VISIBLE_CHARACTER.test(text)

/** Lower-cases the domain. Only the receiving host interprets the local part (RFC 5321 section 2.4). */
export const canonicalMailbox = (text: string): string => {
  const address = text.trim()
  const domainAt = address.lastIndexOf('@') + 1
  return address.slice(0, domainAt) + asciiLowerCase(address.slice(domainAt))
}

const ATOM = "[A-Za-z0-9_!#$%&'*+/=?^`{|}~-]+"
const LOCAL_PART = `${ATOM}(?:\\.${ATOM})*`
const DOT_STRING = new RegExp(`^${LOCAL_PART}$`)
const MAILBOX = withWhiteSpace(`${LOCAL_PART}@${HOST_NAME}`)

/** No control characters, and at least one character that is not white space. */
const PRINTABLE_TEXT = withWhiteSpace(TRIMMED_LINE)
const NOT_BLANK = /\S/
const REGION = withWhiteSpace('[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?')

/**
 * A mailbox (RFC 5321 section 4.1.2) without quoted strings, address literals and single-label domains. At most 64 octets
 * before the @ (section 4.5.3.1.1) and 254 in all, because the path with its brackets has 256. It may not exist.
 */
export const isMailbox = (address: string): boolean => {
  const at = address.lastIndexOf('@')
  const [local, domain] = [address.slice(0, Math.max(at, 0)), address.slice(at + 1)]
  return address.length <= 254 && local.length <= 64 && DOT_STRING.test(local) && isHostName(domain)
}

const deploymentRule = (detail: string) => rule('invalid-deployment', detail)

/**
 * Text that matches `pattern`, in canonical form. `findError` returns what is wrong with the canonical form, as a sentence;
 * it has rules that a pattern cannot express.
 */
const text = (
  missing: string,
  pattern: RegExp,
  toCanonical: (text: string) => string,
  findError: (text: string) => string | null,
) =>
  z
    .string(deploymentRule(missing))
    .regex(pattern, {
      ...rule('invalid-deployment', value => findError(toCanonical(String(value))) ?? missing),
      abort: true,
    })
    .overwrite(toCanonical)
    .check(({ value, issues }) => {
      const detail = findError(value)
      if (detail !== null) issues.push(violation('invalid-deployment', detail))
    })

const textThat = (
  detail: string,
  pattern: RegExp,
  toCanonical: (text: string) => string,
  isValid: (text: string) => boolean = () => true,
) => text(detail, pattern, toCanonical, value => (isValid(value) ? null : detail))

const providersRule = 'providers is required: a list of 1 to 20 providers, each a label such as "hetzner".'

/** The fields of every deployment. Surrounding white space is not significant. */
export const deploymentCommon = z.object({
  orgName: textThat('orgName is required: 1 to 100 printable characters.', PRINTABLE_TEXT, trim, isOrgName).meta({
    description: 'At most 100 characters, at least one of them visible.',
    example: 'Acme',
  }),
  orgEmail: textThat(
    'orgEmail is required: a mail address such as ops@acme.example.',
    MAILBOX,
    canonicalMailbox,
    isMailbox,
  ).meta({ example: 'ops@acme.example' }),
  providers: z
    .array(
      z.string(deploymentRule(providersRule)).regex(DNS_LABEL, deploymentRule(providersRule)).overwrite(canonicalName),
      deploymentRule(providersRule),
    )
    .min(1, deploymentRule(providersRule))
    .max(20, deploymentRule(providersRule))
    .refine(list => new Set(list).size === list.length, deploymentRule('providers must not list a provider twice.'))
    .meta({
      description: 'Lower-cased. Object storage is set up if its provider is listed.',
      uniqueItems: true,
      example: ['hetzner'],
    }),
  region: textThat(
    'region is required: the region of the provider, of a-z, 0-9 and "-", such as fsn1.',
    REGION,
    trim,
    isDnsLabel,
  ).meta({ example: 'fsn1' }),
  sshPublicKey: text(sshKeyRule, SSH_KEY, canonicalSshKey, sshKeyError).meta({
    description: 'One line as in `~/.ssh/id_ed25519.pub`: Ed25519, ECDSA, RSA of 2048 bits or more, or a security key.',
    example: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ops@acme.example',
  }),
})

const fqdnRule = 'sovereignFQDN is required: a fully qualified domain name such as cloud.acme.example.'
const fqdn = createFqdn(deploymentRule(fqdnRule))

/** Clients without a notion of absence send null or an empty text for an optional field. */
export const isAbsent = (value: unknown): boolean =>
  value === null || (typeof value === 'string' && value.trim() === '')
const optionalFqdn = z.preprocess(value => (isAbsent(value) ? undefined : value), fqdn.optional())

const poolMode = z
  .object({
    sovereignDomainMode: z.literal('pool'),
    sovereignPoolDomain: textThat('sovereignPoolDomain is required: a managed pool domain.', NOT_BLANK, canonicalName),
    sovereignSubdomain: textThat(
      'sovereignSubdomain is required: one label of 1 to 63 characters a-z, 0-9 and "-", beginning with a letter, not ending in "-", without "--" in positions 3 and 4.',
      LABEL,
      canonicalName,
    ),
    sovereignFQDN: optionalFqdn,
  })
  .refine(
    ({ sovereignFQDN, sovereignSubdomain, sovereignPoolDomain }) =>
      sovereignFQDN === undefined || sovereignFQDN === `${sovereignSubdomain}.${sovereignPoolDomain}`,
    {
      ...deploymentRule('sovereignFQDN must be sovereignSubdomain, a dot and sovereignPoolDomain; or omit it.'),
      path: ['sovereignFQDN'],
    },
  )

const byoMode = z.object({ sovereignDomainMode: z.literal('byo'), sovereignFQDN: fqdn })

/** The name of a deployment. Mode `byo` (bring your own) ignores the fields of the pool. */
export const deploymentDomain = z.discriminatedUnion(
  'sovereignDomainMode',
  [poolMode, byoMode],
  deploymentRule('sovereignDomainMode is required: "pool" for a name of a pool, "byo" for a domain that you own.'),
)

/** Validated only if the storage provider is among the providers. The bucket's name is derived, not sent. */
export const deploymentStorage = z.object({
  objectStorageRegion: z.preprocess(
    value => (typeof value === 'string' ? value.trim() : value),
    z.enum(objectStorageRegions, deploymentRule(regionRule)),
  ),
  objectStorageAccessKey: text('The access key is required.', ACCESS_KEY, trim, accessKeyError).meta({
    writeOnly: true,
  }),
  objectStorageSecretKey: text('The secret key is required.', SECRET_KEY, trim, secretKeyError).meta({
    writeOnly: true,
  }),
  adoptBucket: z
    .preprocess(value => value ?? undefined, z.boolean(deploymentRule('adoptBucket must be true or false.')).optional())
    .meta({
      description:
        'True: use a bucket that exists with its content, such as that of an earlier deployment of the FQDN. The keys must own it.',
    }),
})

/** The body of a call that runs Terraform on a deployment with object storage. Credentials are never stored. */
export const deploymentCredentials = deploymentStorage.pick({
  objectStorageAccessKey: true,
  objectStorageSecretKey: true,
})

const planHashRule = 'planHash must be that of a plan: 64 hexadecimal digits.'

/** What the caller of an apply or a destroy has done before. */
export const confirmation = z.object({
  unfinishedRemoved: z.boolean(deploymentRule('unfinishedRemoved must be true or false.')).optional().meta({
    description:
      'True: what `error` lists as created without being in the state does not exist, or was deleted at the provider.',
  }),
  planHash: z
    .string(deploymentRule(planHashRule))
    .regex(/^[0-9a-f]{64}$/, deploymentRule(planHashRule))
    .optional()
    .meta({
      description:
        'Of a plan: the run plans again. If the changes differ, it changes nothing and fails, and `error` begins with `plan-changed`.',
    }),
})

/** The body of a destroy. Its fields are validated if the deployment has object storage, and ignored otherwise. */
export const destroyRequest = deploymentCredentials
  .partial()
  .extend(confirmation.shape)
  .meta({ id: 'DestroyRequest', description: 'The keys are required if the deployment has object storage.' })

/** The whole request, for the OpenAPI document. Faults are reported in the order of its fields. */
export const deploymentRequest = z
  .object({
    orgName: deploymentCommon.shape.orgName,
    orgEmail: deploymentCommon.shape.orgEmail,
    sovereignFQDN: optionalFqdn.meta({
      description:
        'Lower-cased, without trailing dot. Empty or absent in mode `pool`: it is derived from subdomain and pool.',
    }),
    sovereignDomainMode: z.enum(['pool', 'byo', 'byo-manual', 'byo-api']).meta({
      description: '`byo-manual` and `byo-api` mean `byo`.',
    }),
    sovereignPoolDomain: poolMode.shape.sovereignPoolDomain.optional().meta({ description: 'Only in mode `pool`.' }),
    sovereignSubdomain: poolMode.shape.sovereignSubdomain.optional().meta({ description: 'Only in mode `pool`.' }),
    providers: deploymentCommon.shape.providers.optional().meta({
      description: 'Absent: the only one that the installation has besides `local`.',
    }),
    region: deploymentCommon.shape.region,
    objectStorageRegion: deploymentStorage.shape.objectStorageRegion.optional(),
    objectStorageAccessKey: deploymentStorage.shape.objectStorageAccessKey.optional(),
    objectStorageSecretKey: deploymentStorage.shape.objectStorageSecretKey.optional(),
    adoptBucket: deploymentStorage.shape.adoptBucket,
    sshPublicKey: deploymentCommon.shape.sshPublicKey,
  })
  .meta({ id: 'DeploymentRequest', description: 'Unknown fields are ignored.' })

/** New input of a deployment that exists. */
export const applyRequest = deploymentRequest.partial().extend(confirmation.shape).meta({
  id: 'ApplyRequest',
  description:
    'A field that is absent keeps its stored value. The fields of the name, and `objectStorageRegion` if the deployment has a bucket, cannot change. The keys are required if the deployment has object storage.',
})

/** A plan of an apply or a destroy. */
export const planRequest = z
  .object({
    operation: z
      .enum(['apply', 'destroy'], deploymentRule('operation must be "apply" or "destroy".'))
      .default('apply')
      .meta({ description: 'What to plan.' }),
    ...applyRequest.omit({ planHash: true }).shape,
  })
  .meta({
    id: 'PlanRequest',
    description: 'The other fields are those of an apply. A plan of a destroy uses only the keys.',
  })

export const toFieldFaults = (error: z.core.$ZodError): readonly FieldFault[] =>
  error.issues.map(issue => ({
    field: String(issue.path[0] ?? ''),
    detail: firstViolation(new z.ZodError([issue])).detail,
  }))

/** The first fault of each field, in the documented order of the fields. */
export const firstFaultPerField = (faults: readonly FieldFault[]): readonly FieldFault[] =>
  Object.keys(deploymentRequest.shape).flatMap(field => faults.find(fault => fault.field === field) ?? [])

/**
 * `pending`: queued. `provisioning`: a create or an apply is in progress. `destroying`: a destroy is in progress. `ready`,
 * `failed` and `destroyed` last until the next call.
 */
export const deploymentStatuses = ['pending', 'provisioning', 'ready', 'failed', 'destroying', 'destroyed'] as const
export const deploymentStatus = z.enum(deploymentStatuses)
export type DeploymentStatus = z.infer<typeof deploymentStatus>

/** The outputs of the infrastructure. */
export const deploymentResult = z
  .object({
    sovereignFQDN: z.string(),
    loadBalancerIP: z.ipv4(),
    controlPlaneIP: z.string().optional(),
    details: z.unknown().optional().meta({ description: 'Additional outputs of the deployment module.' }),
  })
  .meta({ id: 'DeploymentResult' })
export type DeploymentResult = z.infer<typeof deploymentResult>

/** A deployment without its credentials. */
export const deployment = z
  .object({
    id: z.uuid(),
    status: deploymentStatus,
    operation: z
      .enum(['create', 'apply', 'destroy'])
      .optional()
      .meta({ description: 'What its last run does, or did. Only a destroy follows a destroy that failed.' }),
    startedAt: timestamp,
    finishedAt: timestamp.nullable(),
    orgName: z.string(),
    orgEmail: z.string().optional().meta({ description: 'Only on the operator listener.' }),
    sovereignFQDN: z.string(),
    providers: z.array(z.string()),
    region: z.string(),
    module: z.string().optional().meta({
      description:
        'The module that the last apply used: its name and a hash of its content. Absent before the first one.',
      example: 'cluster@sha256:0123456789ab',
    }),
    objectStorageRegion: z.string().meta({ description: 'Empty without object storage.' }),
    objectStorageBucket: z.string().meta({ description: 'Derived from the FQDN; empty without object storage.' }),
    keptBucket: z.string().optional().meta({
      description:
        'The bucket that remains if the deployment is deleted, with its objects. A deployment of the same FQDN can use it: create one with `adoptBucket`.',
    }),
    numEvents: z.number().int(),
    error: z.string().optional().meta({ description: 'Only of a failed deployment: why its last operation failed.' }),
    result: deploymentResult.optional(),
  })
  .meta({ id: 'Deployment' })
export type Deployment = z.infer<typeof deployment>

export const deploymentCreated = z
  .object({
    id: z.uuid(),
    status: z.literal('provisioning'),
    streamURL: z.string(),
    deploymentToken: z.string().min(1).meta({
      description:
        'Opaque. Required in-cluster to change the deployment. Only this response and its replay under the same Idempotency-Key contain it.',
    }),
  })
  .meta({ id: 'DeploymentCreated' })
export type DeploymentCreated = z.infer<typeof deploymentCreated>

export const deploymentStarted = z
  .object({ id: z.uuid(), status: z.enum(['provisioning', 'destroying']), streamURL: z.string() })
  .meta({ id: 'DeploymentStarted' })
export type DeploymentStarted = z.infer<typeof deploymentStarted>

export const deploymentPlan = z
  .object({
    operation: z.enum(['apply', 'destroy']),
    text: z.string().meta({ description: 'As Terraform prints it, with secrets masked.' }),
    json: z.unknown().meta({ description: "Terraform's JSON representation of the plan, with secrets masked." }),
    planHash: z.string().optional().meta({
      description:
        'Identifies the changes in `json`; an apply or a destroy with it does exactly these or nothing. Absent if the plan failed.',
    }),
    problem: problem.optional().meta({
      description:
        'Only if the plan failed after the response had begun, 15 s after the request: what would have been its body with another status.',
    }),
  })
  .meta({ id: 'DeploymentPlan' })
export type DeploymentPlan = z.infer<typeof deploymentPlan>

export const deploymentUnlocked = z
  .object({
    id: z.uuid(),
    unlocked: z.boolean().meta({ description: 'False if the lock no longer existed.' }),
  })
  .meta({ id: 'DeploymentUnlocked' })
export type DeploymentUnlocked = z.infer<typeof deploymentUnlocked>

/** The token of the 201 of the deployment. Only the in-cluster listener requires it. */
export const deploymentTokenHeader = z.object({
  'X-Deployment-Token': z.string().optional().meta({ description: 'The `deploymentToken` of the deployment.' }),
})

/** The `data` of an event in the log stream, whose `id` counts from 1. */
export const deploymentEvent = z
  .object({
    time: timestamp,
    phase: z.enum(['reserve', 'init', 'apply', 'destroy', 'commit', 'release', 'end']),
    level: z.enum(['info', 'warn', 'error']),
    message: z.string(),
  })
  .meta({ id: 'DeploymentEvent' })
export type DeploymentEvent = z.infer<typeof deploymentEvent>

const lastEventIdRule = rule('invalid-cursor', 'Last-Event-ID must be the id of an event in this stream.')

/** Up to 2147483647, the largest number of a log line. */
const EVENT_ID =
  '0|[1-9][0-9]{0,8}|1[0-9]{9}|20[0-9]{8}|21[0-3][0-9]{7}|214[0-6][0-9]{6}|2147[0-3][0-9]{5}|21474[0-7][0-9]{4}|214748[0-2][0-9]{3}|2147483[0-5][0-9]{2}|21474836[0-3][0-9]|214748364[0-7]'

/** The log line after which the stream resumes. Empty is 0: an EventSource starts with an empty id. */
export const lastEventId = z
  .string()
  .regex(new RegExp(`^(?:${EVENT_ID})?$`), { ...lastEventIdRule, abort: true })
  .transform(Number)
  .meta({ type: 'string', description: 'The `id` of the last event received; the stream resumes after it.' })

export const removeQuery = z.object({
  abandon: z
    .enum(['true', 'false'], rule('invalid-state', 'abandon must be true or false.'))
    .optional()
    .meta({ description: 'Gives up infrastructure that still exists: the state is archived. Operator listener only.' }),
  cancel: z.enum(['true', 'false'], rule('invalid-state', 'cancel must be true or false.')).optional().meta({
    description:
      'Only cancels: a deployment whose run has ended is returned and kept, so that the request can be repeated. `abandon` has no effect then.',
  }),
  force: z.enum(['true', 'false'], rule('invalid-state', 'force must be true or false.')).optional().meta({
    description:
      'With `cancel`: ends Terraform at once. What it is creating may then exist without being in the state; `error` lists it.',
  }),
})

export const deploymentsQuery = z.object({
  status: z
    .enum(deploymentStatuses, rule('invalid-state', `status must be one of ${deploymentStatuses.join(', ')}.`))
    .optional(),
  search: z
    .string()
    .regex(new RegExp(`^${WITHOUT_NULL}$`), rule('invalid-format', 'search must be text without NUL.'))
    .refine(
      text => Array.from(text).length <= 253,
      rule('invalid-format', 'search must be text of at most 253 characters.'),
    )
    .optional()
    .meta({ maxLength: 253, description: 'Only deployments whose FQDN or `orgName` contains this text, in any case.' }),
  limit: limit.optional().meta({ description: 'Maximum number of items; 100 by default, and never more than 1000.' }),
  cursor: cursor(/^[1-9][0-9]{0,15}$/).optional(),
})

export const deploymentsResponse = z
  .object({ deployments: z.array(deployment), nextCursor: z.string().optional() })
  .meta({ id: 'DeploymentsResponse', description: 'Newest first.' })
