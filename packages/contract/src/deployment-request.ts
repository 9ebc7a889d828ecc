import * as z from 'zod'
import { type FieldFault, fault, faultOf } from './allocation-problem.ts'
import { canonicalMailbox, isMailbox, isOrgName } from './deployment-fields.ts'
import { canonicalName, isDnsLabel, isHostName, subdomain } from './names.ts'
import { canonicalSshKey, sshKeyFault, sshKeyRule } from './ssh-key.ts'
import {
  accessKeyFault,
  isObjectStorageRegion,
  objectStorageRegions,
  regionRule,
  secretKeyFault,
} from './storage-keys.ts'
import { trimmed } from './text.ts'

const rule = (detail: string) => fault('invalid-deployment', detail)

/** Text that is made canonical and then is good or not. `faultIn` says why not, as a sentence. */
const text = (missing: string, canonical: (text: string) => string, faultIn: (text: string) => string | null) =>
  z
    .string(rule(missing))
    .overwrite(canonical)
    .check(({ value, issues }) => {
      const detail = faultIn(value)
      if (detail !== null) issues.push({ code: 'custom', input: value, message: rule(detail) })
    })

const unless = (isGood: (text: string) => boolean, detail: string) => (value: string) => (isGood(value) ? null : detail)
const ruled = (detail: string, canonical: (text: string) => string, isGood: (text: string) => boolean) =>
  text(detail, canonical, unless(isGood, detail))

const providersRule = 'providers is required: a list of 1 to 20 providers, each a label such as "hetzner".'

/** What every deployment has. White space around a value is not significant. */
export const deploymentCommon = z.object({
  orgName: ruled('orgName is required: 1 to 100 printable characters.', trimmed, isOrgName).meta({ example: 'Acme' }),
  orgEmail: ruled('orgEmail is required: a mail address such as ops@acme.example.', canonicalMailbox, isMailbox).meta({
    example: 'ops@acme.example',
  }),
  providers: z
    .array(z.string(rule(providersRule)).overwrite(canonicalName), rule(providersRule))
    .refine(list => list.length >= 1 && list.length <= 20 && list.every(isDnsLabel), { error: rule(providersRule) })
    .refine(list => new Set(list).size === list.length, { error: rule('providers must name each provider once.') })
    .meta({
      description: 'Lower-cased. Object storage is set up if its provider is among them.',
      example: ['hetzner'],
    }),
  region: ruled(
    'region is required: the region of the provider, of a-z, 0-9 and "-", such as fsn1.',
    trimmed,
    isDnsLabel,
  ).meta({ example: 'fsn1' }),
  sshPublicKey: text(sshKeyRule, canonicalSshKey, sshKeyFault).meta({
    description: 'One line as in `~/.ssh/id_ed25519.pub`: Ed25519, ECDSA, RSA of 2048 bits or more, or a security key.',
  }),
})

const fqdnRule = 'sovereignFQDN is required: a fully qualified domain name such as cloud.acme.example.'
const fqdn = ruled(fqdnRule, name => canonicalName(name).replace(/\.$/, ''), isHostName).meta({
  description:
    'Lower-cased, without trailing dot. In mode `pool` it may be left out: it is made of subdomain and pool.',
})

/** Clients whose language knows no absence send an empty text for a field that they leave out. */
const isLeftOut = (value: unknown) => value === null || (typeof value === 'string' && value.trim() === '')
const optionalFqdn = z.preprocess(value => (isLeftOut(value) ? undefined : value), fqdn.optional())

const poolMode = z
  .object({
    sovereignDomainMode: z.literal('pool'),
    sovereignPoolDomain: ruled('sovereignPoolDomain is required: a managed pool domain.', canonicalName, Boolean),
    sovereignSubdomain: ruled(
      'sovereignSubdomain is required: one label of 1 to 63 characters a-z, 0-9 and "-", first a letter, last not a "-", no "--" in positions 3 and 4.',
      canonicalName,
      name => subdomain.safeParse(name).success,
    ),
    sovereignFQDN: optionalFqdn,
  })
  .refine(
    ({ sovereignFQDN, sovereignSubdomain, sovereignPoolDomain }) =>
      sovereignFQDN === undefined || sovereignFQDN === `${sovereignSubdomain}.${sovereignPoolDomain}`,
    {
      error: rule('sovereignFQDN must be sovereignSubdomain, a dot and sovereignPoolDomain; or leave it out.'),
      path: ['sovereignFQDN'],
    },
  )

const byoMode = z.object({ sovereignDomainMode: z.literal('byo'), sovereignFQDN: fqdn })

/** Under which name it is reached. Of mode `byo` the pool's fields are ignored. */
export const deploymentDomain = z.discriminatedUnion('sovereignDomainMode', [poolMode, byoMode], {
  error: rule('sovereignDomainMode is required: "pool" for a name of a pool, "byo" for a domain of one\'s own.'),
})

/** Looked at only when the storage provider is among the providers. The bucket's name is never sent: it is derived. */
export const deploymentStorage = z.object({
  objectStorageRegion: ruled(regionRule, trimmed, isObjectStorageRegion).pipe(z.enum(objectStorageRegions)),
  objectStorageAccessKey: text('The access key is required.', trimmed, accessKeyFault).meta({ writeOnly: true }),
  objectStorageSecretKey: text('The secret key is required.', trimmed, secretKeyFault).meta({ writeOnly: true }),
})

/** The whole request for the description; its fields stand in the order in which faults are told. */
export const deploymentRequest = z
  .object({
    orgName: deploymentCommon.shape.orgName,
    orgEmail: deploymentCommon.shape.orgEmail,
    sovereignFQDN: fqdn.optional(),
    sovereignDomainMode: z.enum(['pool', 'byo']),
    sovereignPoolDomain: poolMode.shape.sovereignPoolDomain.optional().meta({ description: 'Of mode `pool`.' }),
    sovereignSubdomain: poolMode.shape.sovereignSubdomain.optional().meta({ description: 'Of mode `pool`.' }),
    providers: deploymentCommon.shape.providers,
    region: deploymentCommon.shape.region,
    objectStorageRegion: deploymentStorage.shape.objectStorageRegion.optional(),
    objectStorageAccessKey: deploymentStorage.shape.objectStorageAccessKey.optional(),
    objectStorageSecretKey: deploymentStorage.shape.objectStorageSecretKey.optional(),
    sshPublicKey: deploymentCommon.shape.sshPublicKey,
  })
  .meta({ id: 'DeploymentRequest', description: 'Unknown fields are ignored.' })

const order = Object.keys(deploymentRequest.shape)

/** The faults that a section was found to have. */
export const deploymentFaultsOf = (error: z.core.$ZodError): readonly FieldFault[] =>
  error.issues.map(issue => ({
    field: String(issue.path[0] ?? ''),
    detail: faultOf(new z.ZodError([issue])).detail,
  }))

/** The first fault of each field, in the documented order. */
export const inDocumentedOrder = (faults: readonly FieldFault[]): readonly FieldFault[] =>
  order.flatMap(field => faults.find(fault => fault.field === field) ?? [])
