import {
  canonicalName,
  type DomainCheck,
  deploymentCommon,
  deploymentDomain,
  deploymentStorage,
  type FieldFault,
  isObjectStorageRegion,
  type ServiceSettings,
  toCanonicalFqdn,
  type ValidationResult,
} from '@pool/contract'
import * as z from 'zod'
import { toFieldText } from './text.ts'

export const steps = ['domain', 'organisation', 'storage', 'ssh', 'summary'] as const
export type Step = (typeof steps)[number]

export const stepTitles: Readonly<Record<Step, string>> = {
  domain: 'Domain',
  organisation: 'Organisation and region',
  storage: 'Object storage',
  ssh: 'SSH key',
  summary: 'Summary',
}

/** What the user has entered, without the keys of the object storage. */
export interface DeploymentForm {
  readonly mode: 'pool' | 'byo'
  readonly pool: string
  readonly subdomain: string
  /** Only in mode `byo`. */
  readonly fqdn: string
  readonly orgName: string
  readonly orgEmail: string
  readonly providers: readonly string[]
  readonly region: string
  readonly objectStorageRegion: string
  /** Whether a bucket that exists is used with its content. */
  readonly adoptBucket: boolean
  readonly sshPublicKey: string
}

export const createForm = ({
  managedDomains,
  deploymentProviders,
  objectStorage,
}: ServiceSettings): DeploymentForm => ({
  mode: 'pool',
  pool: managedDomains[0] ?? '',
  subdomain: '',
  fqdn: '',
  orgName: '',
  orgEmail: '',
  // With a choice, the first one would be that of tests.
  providers: deploymentProviders.length === 1 ? deploymentProviders : [],
  region: '',
  objectStorageRegion: objectStorage.regions[0] ?? '',
  adoptBucket: false,
  sshPublicKey: '',
})

export const hasStorage = ({ providers }: DeploymentForm, { objectStorage }: ServiceSettings): boolean =>
  providers.includes(objectStorage.provider)

/** The steps of this form: object storage only if its provider is chosen. */
export const findSteps = (form: DeploymentForm, settings: ServiceSettings): readonly Step[] =>
  steps.filter(step => step !== 'storage' || hasStorage(form, settings))

/** The domain of the deployment; empty while it is unknown. */
export const toFqdn = ({ mode, pool, subdomain, fqdn }: DeploymentForm): string => {
  if (mode === 'byo') return toCanonicalFqdn(fqdn)
  return subdomain.trim() === '' || pool === '' ? '' : `${canonicalName(subdomain)}.${pool}`
}

/** The bucket of the deployment. */
export const toBucketName = (form: DeploymentForm, { bucketPrefix }: ServiceSettings): string =>
  `${bucketPrefix}-${toFqdn(form).replaceAll('.', '-')}`

/** Fields of the wizard and what is wrong with them. `form` is an error of no single field. */
type FormField = keyof DeploymentForm | 'objectStorageAccessKey' | 'objectStorageSecretKey' | 'form'
export type FieldErrors = Readonly<Partial<Record<FormField, string>>>

const findError = (schema: z.ZodType, value: unknown): string | undefined => {
  const message = schema.safeParse(value).error?.issues[0]?.message
  return message === undefined ? undefined : toFieldText(message)
}

const findDomainErrors = (form: DeploymentForm): FieldErrors => {
  if (form.mode === 'byo') {
    const error = findError(deploymentDomain, { sovereignDomainMode: 'byo', sovereignFQDN: form.fqdn })
    return error === undefined ? {} : { fqdn: error }
  }
  const pool = { sovereignDomainMode: 'pool', sovereignPoolDomain: form.pool, sovereignSubdomain: form.subdomain }
  const error = findError(deploymentDomain, pool)
  if (error === undefined) return {}
  return form.pool === '' ? { pool: error } : { subdomain: error }
}

const { orgName, orgEmail, providers, region, sshPublicKey } = deploymentCommon.shape
const fieldSchemas = { orgName, orgEmail, providers, region, sshPublicKey } as const

const findFieldErrors = (form: DeploymentForm, fields: readonly (keyof typeof fieldSchemas)[]): FieldErrors => {
  const errors: Partial<Record<FormField, string>> = {}
  for (const field of fields) {
    const error = findError(fieldSchemas[field], form[field])
    if (error !== undefined) errors[field] = error
  }
  return errors
}

/** What is wrong with the fields of a step, by the rules of the service. */
export const findStepErrors = (step: Step, form: DeploymentForm): FieldErrors => {
  switch (step) {
    case 'domain':
      return findDomainErrors(form)
    case 'organisation':
      return findFieldErrors(form, ['orgName', 'orgEmail', 'providers', 'region'])
    case 'storage': {
      const error = findError(deploymentStorage.shape.objectStorageRegion, form.objectStorageRegion)
      return error === undefined ? {} : { objectStorageRegion: error }
    }
    case 'ssh':
      return findFieldErrors(form, ['sshPublicKey'])
    case 'summary':
      return {}
  }
}

/** The body of the request that creates the deployment, without the keys. */
export const toRequestBody = (form: DeploymentForm, settings: ServiceSettings) => ({
  orgName: form.orgName.trim(),
  orgEmail: form.orgEmail.trim(),
  ...(form.mode === 'pool'
    ? {
        sovereignDomainMode: 'pool' as const,
        sovereignPoolDomain: form.pool,
        sovereignSubdomain: canonicalName(form.subdomain),
      }
    : { sovereignDomainMode: 'byo' as const, sovereignFQDN: toFqdn(form) }),
  providers: [...form.providers],
  region: form.region.trim(),
  ...(hasStorage(form, settings) && isObjectStorageRegion(form.objectStorageRegion)
    ? { objectStorageRegion: form.objectStorageRegion, ...(form.adoptBucket ? { adoptBucket: true } : {}) }
    : {}),
  sshPublicKey: form.sshPublicKey.trim(),
})

const requestFields: Readonly<Record<string, FormField>> = {
  orgName: 'orgName',
  orgEmail: 'orgEmail',
  providers: 'providers',
  region: 'region',
  objectStorageRegion: 'objectStorageRegion',
  objectStorageAccessKey: 'objectStorageAccessKey',
  objectStorageSecretKey: 'objectStorageSecretKey',
  adoptBucket: 'adoptBucket',
  sshPublicKey: 'sshPublicKey',
  sovereignPoolDomain: 'pool',
  sovereignSubdomain: 'subdomain',
  sovereignFQDN: 'fqdn',
}
const domainCodes: readonly string[] = [
  'subdomain-conflict',
  'fqdn-conflict',
  'fqdn-remains',
  'bucket-conflict',
  'domain-not-proven',
  'dns-unavailable',
]

export interface CreateProblem {
  readonly code: string
  readonly detail: string | undefined
  readonly faults: readonly FieldFault[] | undefined
}

/** Puts the error of the service at the fields that it is about; empty if it is about none. */
export const toFieldErrors = (
  { code, detail = code, faults = [] }: CreateProblem,
  form: DeploymentForm,
): FieldErrors => {
  const domainField = form.mode === 'pool' ? 'subdomain' : 'fqdn'
  if (code === 'bucket-exists') return { adoptBucket: detail }
  if (domainCodes.includes(code)) return { [domainField]: detail }
  const errors: Partial<Record<FormField, string>> = {}
  for (const fault of faults) {
    const field = requestFields[fault.field] ?? 'form'
    errors[field === 'fqdn' ? domainField : field] ??= toFieldText(fault.detail)
  }
  return errors
}

const stepFields: Readonly<Record<Step, readonly FormField[]>> = {
  domain: ['mode', 'pool', 'subdomain', 'fqdn'],
  organisation: ['orgName', 'orgEmail', 'providers', 'region'],
  storage: ['objectStorageRegion', 'objectStorageAccessKey', 'objectStorageSecretKey', 'adoptBucket'],
  ssh: ['sshPublicKey'],
  summary: ['form'],
}

/** The first step that has an error. */
export const findFaultyStep = (errors: FieldErrors): Step | undefined =>
  steps.find(step => stepFields[step].some(field => errors[field] !== undefined))

const draft = z.object({
  step: z.enum(steps),
  form: z.object({
    mode: z.enum(['pool', 'byo']),
    pool: z.string(),
    subdomain: z.string(),
    fqdn: z.string(),
    orgName: z.string(),
    orgEmail: z.string(),
    providers: z.array(z.string()),
    region: z.string(),
    objectStorageRegion: z.string(),
    adoptBucket: z.boolean().default(false),
    sshPublicKey: z.string(),
  }),
})

interface Draft {
  readonly step: Step
  readonly form: DeploymentForm
}

/** The text to keep in the page's storage. An SSH key that is not a valid public key may be a private one: it is left out. */
export const formatDraft = ({ step, form }: Draft): string => {
  const isPublic = findFieldErrors(form, ['sshPublicKey']).sshPublicKey === undefined
  return JSON.stringify({ step, form: { ...form, sshPublicKey: isPublic ? form.sshPublicKey.trim() : '' } })
}

/**
 * Restores a draft after a reload. The keys were not kept, so that a form with object storage continues at that step at the
 * latest. Null: there is no draft that this version can read.
 */
export const parseDraft = (text: string | null, settings: ServiceSettings): Draft | null => {
  if (text === null) return null
  try {
    const { step, form } = draft.parse(JSON.parse(text))
    const isAfterStorage = steps.indexOf(step) > steps.indexOf('storage')
    return { form, step: isAfterStorage && hasStorage(form, settings) ? 'storage' : step }
  } catch {
    return null
  }
}

/** What is wrong with the bucket of the deployment, as the keys see it; undefined: nothing. */
export const describeBucketError = (bucket: ValidationResult['bucket'], { adoptBucket }: DeploymentForm) => {
  if (bucket?.found === 'foreign') {
    return `The bucket ${bucket.name} exists, and these keys do not own it: enter those of its owner, or choose another name.`
  }
  if (bucket?.found !== 'owned' || adoptBucket) return undefined
  return `The bucket ${bucket.name} exists already, and these keys own it: use it, or choose another name.`
}

interface ProofStatus {
  readonly tone: 'ok' | 'busy' | 'bad' | 'idle'
  readonly text: string
}

/** Whether the TXT record proves the domain, as a sentence. */
export const describeProof = ({ proof, proofDetail }: Pick<DomainCheck, 'proof' | 'proofDetail'>): ProofStatus => {
  switch (proof) {
    case 'proven':
      return { tone: 'ok', text: 'The record is visible: the domain is proven.' }
    case 'missing':
      return {
        tone: 'busy',
        text: 'The record is not visible yet. A resolver can remember its absence for as long as the SOA record of the zone says.',
      }
    case 'unknown':
      return { tone: 'bad', text: proofDetail ?? 'The record could not be looked up.' }
    case 'not-required':
      return { tone: 'idle', text: 'This service does not require a proof of the domain.' }
  }
}
