import {
  canonicalName,
  deploymentCommon,
  deploymentCredentials,
  deploymentDomain,
  deploymentStorage,
  type FieldFault,
  firstFaultPerField,
  isAbsent,
  redacted,
  toCanonicalFqdn,
  toFieldFaults,
} from '@pool/contract'
import { findNearest } from '@pool/runtime/spelling'
import { isJsonObject, type JsonObject } from '../../lib/text.ts'
import type { PoolName } from '../../naming/naming.ts'
import {
  type BucketNameResult,
  type Pools,
  toBucketName,
  toFqdn,
  validateName,
  validateOpenPool,
} from '../../naming/naming.ts'
import type { AccessKeyPair, ConfirmedPlan, DeploymentSpec, InvalidDeployment } from './types.ts'

export interface SpecRules {
  /** The provider that brings object storage, as written in `providers`. */
  readonly storageProvider: string
  /** The names that `providers` may contain. */
  readonly knownProviders: readonly string[]
  readonly toBucketName: (fqdn: string) => BucketNameResult
  readonly pools: Pools
}

export interface ValidSpec {
  readonly kind: 'valid'
  readonly spec: DeploymentSpec
  /** Null without object storage. */
  readonly credentials: AccessKeyPair | null
  /** Whether a bucket that exists is used. Default: false. */
  readonly adoptBucket?: boolean
  /** Whether the caller has removed what earlier runs created and the state does not have. */
  readonly unfinishedRemoved?: boolean | undefined
  /** Of the plan that the caller has seen. */
  readonly planHash?: string | undefined
}

export type SpecResult = ValidSpec | InvalidDeployment

const changeableFields = deploymentCommon.partial()
const storageUse = deploymentStorage.omit({ objectStorageRegion: true })

type DomainResult =
  | { readonly kind: 'valid'; readonly fqdn: string; readonly name: PoolName | null }
  | { readonly kind: 'invalid'; readonly faults: readonly FieldFault[] }

const invalid = (...faults: readonly FieldFault[]): DomainResult => ({ kind: 'invalid', faults })

/** The pool that contains the name, or is the name, if any. */
const findEnclosingPool = (fqdn: string, { known }: Pools): string | undefined => {
  const labels = fqdn.split('.')
  return labels.map((_, at) => labels.slice(at).join('.')).find(suffix => known.includes(suffix))
}

/** Reports an unmanaged pool even if other invalid fields prevented parsing of the section. */
const validatePoolField = (pool: unknown, mode: unknown, pools: Pools): readonly FieldFault[] => {
  if (mode !== 'pool' || typeof pool !== 'string' || canonicalName(pool) === '') return []
  const rejection = validateOpenPool(canonicalName(pool), pools)
  return rejection ? [{ field: 'sovereignPoolDomain', detail: rejection.detail }] : []
}

/**
 * The FQDN of a deployment. A customer's own domain must not lie in a pool: the name would be in use without being
 * allocated.
 */
const parseDomain = (body: Readonly<Record<string, unknown>>, pools: Pools): DomainResult => {
  const parsed = deploymentDomain.safeParse(body)
  if (!parsed.success) {
    const poolFaults = validatePoolField(body.sovereignPoolDomain, body.sovereignDomainMode, pools)
    return invalid(...toFieldFaults(parsed.error), ...poolFaults)
  }
  if (parsed.data.sovereignDomainMode === 'pool') {
    const { sovereignPoolDomain: poolDomain, sovereignSubdomain: subdomain } = parsed.data
    const rejection = validateName(poolDomain, subdomain, pools)
    if (!rejection) return { kind: 'valid', fqdn: toFqdn(poolDomain, subdomain), name: { poolDomain, subdomain } }
    const field = rejection.kind === 'reserved' ? 'sovereignSubdomain' : 'sovereignPoolDomain'
    return invalid({ field, detail: rejection.detail })
  }
  const { sovereignFQDN: fqdn } = parsed.data
  const pool = findEnclosingPool(fqdn, pools)
  if (pool === undefined) return { kind: 'valid', fqdn, name: null }
  const detail = `sovereignFQDN is in the pool ${pool}; use sovereignDomainMode "pool" to allocate a name there.`
  return invalid({ field: 'sovereignFQDN', detail })
}

/** Works on an otherwise invalid list too, so that the storage section is validated in the same response. */
const includesProvider = (providers: unknown, wanted: string): boolean =>
  Array.isArray(providers) &&
  providers.some(provider => typeof provider === 'string' && canonicalName(provider) === wanted)

/** A misspelt name would silently create a deployment without what the provider brings, such as its object storage. */
const toProviderFaults = (providers: unknown, known: readonly string[]): readonly FieldFault[] => {
  const parsed = deploymentCommon.shape.providers.safeParse(providers)
  const unknown = parsed.data?.find(provider => !known.includes(provider))
  if (unknown === undefined) return []
  const detail = `Unknown provider "${unknown}"; did you mean "${findNearest(unknown, known)}"? Use one of: ${known.join(', ')}.`
  return [{ field: 'providers', detail }]
}

const toBucketFaults = (domain: DomainResult, bucket: BucketNameResult | null): readonly FieldFault[] => {
  if (domain.kind !== 'valid' || bucket?.kind !== 'invalid') return []
  return [{ field: domain.name ? 'sovereignSubdomain' : 'sovereignFQDN', detail: bucket.reason }]
}

/** Older clients name two ways of `byo`, and no provider where the installation has one besides `local`. */
const withoutSynonyms = (body: JsonObject): JsonObject =>
  body.sovereignDomainMode === 'byo-manual' || body.sovereignDomainMode === 'byo-api'
    ? { ...body, sovereignDomainMode: 'byo' }
    : body

const withDefaultProvider = (body: JsonObject, known: readonly string[]): JsonObject => {
  const [only, ...others] = known.filter(name => name !== 'local')
  const isAbsent = body.providers === undefined || body.providers === null
  return isAbsent && only !== undefined && others.length === 0 ? { ...body, providers: [only] } : body
}

/**
 * Parses a request, and reports all invalid fields. The database decides whether name, FQDN and bucket are
 * free. Without the storage provider, the storage fields are ignored.
 */
export const parseDeploymentSpec = (
  sent: unknown,
  { storageProvider, knownProviders, toBucketName, pools }: SpecRules,
): SpecResult => {
  if (!isJsonObject(sent)) {
    const detail = 'The body must be a JSON object with the fields of a deployment.'
    return { kind: 'invalid-deployment', faults: [{ field: '', detail }] }
  }
  const body = withDefaultProvider(withoutSynonyms(sent), knownProviders)
  const common = deploymentCommon.safeParse(body)
  const providerFaults = toProviderFaults(body.providers, knownProviders)
  const domain = parseDomain(body, pools)
  const storage = includesProvider(body.providers, storageProvider) ? deploymentStorage.safeParse(body) : null
  const bucket = storage && domain.kind === 'valid' ? toBucketName(domain.fqdn) : null
  const isInvalid = !common.success || storage?.success === false || bucket?.kind === 'invalid'
  if (isInvalid || domain.kind === 'invalid' || providerFaults.length > 0) {
    const sections = [common, storage].flatMap(section => (section?.error ? toFieldFaults(section.error) : []))
    const named = domain.kind === 'invalid' ? domain.faults : toBucketFaults(domain, bucket)
    return { kind: 'invalid-deployment', faults: firstFaultPerField([...sections, ...providerFaults, ...named]) }
  }
  const { data: section } = storage ?? {}
  const { fqdn, name } = domain
  const spec: DeploymentSpec = {
    ...common.data,
    sovereignFQDN: fqdn,
    name,
    storage: section && bucket ? { region: section.objectStorageRegion, bucket: bucket.name } : null,
  }
  const credentials = section
    ? { accessKey: section.objectStorageAccessKey, secretKey: section.objectStorageSecretKey }
    : null
  return { kind: 'valid', spec, credentials, ...(section?.adoptBucket && { adoptBucket: true }) }
}

/** The fields that identify a deployment, as create parses them. */
const identityFields = [
  ['sovereignFQDN', ({ sovereignFQDN }: DeploymentSpec) => sovereignFQDN, toCanonicalFqdn],
  ['sovereignDomainMode', ({ name }: DeploymentSpec) => (name ? 'pool' : 'byo'), (text: string) => text],
  ['sovereignPoolDomain', ({ name }: DeploymentSpec) => name?.poolDomain, canonicalName],
  ['sovereignSubdomain', ({ name }: DeploymentSpec) => name?.subdomain, canonicalName],
] as const

/** As in create, an empty FQDN is an absent one, and mode `byo` ignores the fields of the pool. */
const toIdentityFaults = (body: JsonObject, spec: DeploymentSpec): readonly FieldFault[] =>
  identityFields.flatMap(([field, getStored, toCanonical]) => {
    const [sent, stored] = [body[field], getStored(spec)]
    const isIgnored = stored === undefined && body.sovereignDomainMode === 'byo'
    if (sent === undefined || isIgnored || (field === 'sovereignFQDN' && isAbsent(sent))) return []
    if (typeof sent === 'string' && toCanonical(sent) === stored) return []
    const detail =
      stored === undefined
        ? `${field} cannot be set, because the deployment has a domain of its own; omit it.`
        : `${field} is "${stored}" and cannot change; omit it, or create another deployment.`
    return [{ field, detail }]
  })

/** The storage of a deployment with changes. Storage never ends: without it, the module would delete the bucket. */
const parseStorageChange = (
  body: JsonObject,
  { spec, hasBucket }: ChangeableDeployment,
  { storageProvider, toBucketName }: SpecRules,
): { readonly storage: DeploymentSpec['storage']; readonly faults: readonly FieldFault[] } => {
  const { storage: stored, sovereignFQDN } = spec
  const isListed = includesProvider(body.providers, storageProvider)
  if (!stored && !isListed) return { storage: null, faults: [] }
  const isRemoved = Array.isArray(body.providers) && !isListed
  const providersDetail = `providers must list "${storageProvider}", because the deployment has object storage; add it, or create another deployment.`
  const providerFaults = isRemoved ? [{ field: 'providers', detail: providersDetail }] : []
  const sent = body.objectStorageRegion === undefined ? stored?.region : body.objectStorageRegion
  const { data: region, error } = deploymentStorage.shape.objectStorageRegion.safeParse(sent)
  const bucket: BucketNameResult = stored ? { kind: 'bucket', name: stored.bucket } : toBucketName(sovereignFQDN)
  if (error || bucket.kind === 'invalid') {
    const regionFaults = error
      ? toFieldFaults(error).map(({ detail }) => ({ field: 'objectStorageRegion', detail }))
      : []
    const bucketFaults = bucket.kind === 'invalid' ? [{ field: 'providers', detail: bucket.reason }] : []
    return { storage: null, faults: [...providerFaults, ...regionFaults, ...bucketFaults] }
  }
  const storage = { region, bucket: bucket.name }
  if (!stored || !hasBucket || region === stored.region) return { storage, faults: providerFaults }
  const detail = `objectStorageRegion is "${stored.region}" and cannot change, because the bucket exists; omit it, or create another deployment.`
  return { storage, faults: [...providerFaults, { field: 'objectStorageRegion', detail }] }
}

const MALFORMED_BODY: InvalidDeployment = {
  kind: 'invalid-deployment',
  faults: [{ field: '', detail: 'The body must be a JSON object, or absent.' }],
}

/** The fields of an optional body; null if it is present and not an object. */
const toFields = (body: unknown): JsonObject | null => {
  if (body === undefined) return {}
  return isJsonObject(body) ? withoutSynonyms(body) : null
}

/** A deployment whose input an apply can change. */
export interface ChangeableDeployment {
  readonly spec: DeploymentSpec
  /** Whether its bucket may exist. */
  readonly hasBucket: boolean
}

/**
 * Parses the new input of a deployment by the rules of `parseDeploymentSpec`, and reports all invalid fields. A field that
 * is absent keeps its stored value, which is not validated again: the rules may have changed since.
 */
export const parseDeploymentChange = (
  body: unknown,
  deployment: ChangeableDeployment,
  rules: SpecRules,
): SpecResult => {
  const fields = toFields(body)
  if (!fields) return MALFORMED_BODY
  const { spec } = deployment
  const changes = changeableFields.safeParse(fields)
  const { storage, faults: storageFaults } = parseStorageChange(fields, deployment, rules)
  const usesStorage = spec.storage !== null || includesProvider(fields.providers, rules.storageProvider)
  const keys = usesStorage ? storageUse.safeParse(fields) : null
  const sections = [changes, keys].flatMap(section => (section?.error ? toFieldFaults(section.error) : []))
  const providerFaults = toProviderFaults(fields.providers, rules.knownProviders)
  const faults = [...sections, ...providerFaults, ...storageFaults, ...toIdentityFaults(fields, spec)]
  if (!changes.success || faults.length > 0) return { kind: 'invalid-deployment', faults: firstFaultPerField(faults) }
  const credentials = keys?.data
    ? { accessKey: keys.data.objectStorageAccessKey, secretKey: keys.data.objectStorageSecretKey }
    : null
  // Only fields that were sent: JSON has no undefined.
  const changed = changes.data as Partial<DeploymentSpec>
  const adopting = keys?.data?.adoptBucket && { adoptBucket: true }
  return { kind: 'valid', spec: { ...spec, ...changed, storage }, credentials, ...adopting }
}

export interface SpecParserOptions extends Pick<SpecRules, 'storageProvider' | 'knownProviders'> {
  readonly bucketPrefix: string
  /** They change while the service runs. */
  readonly pools: () => Pools
}

/** Parses requests by the rules of the moment. */
export const createSpecParser = ({ bucketPrefix, pools, ...fixed }: SpecParserOptions) => {
  const rules = (): SpecRules => ({
    ...fixed,
    toBucketName: fqdn => toBucketName(bucketPrefix, fqdn),
    pools: pools(),
  })
  return {
    parseSpec: (body: unknown): SpecResult => parseDeploymentSpec(body, rules()),
    parseChange: (body: unknown, deployment: ChangeableDeployment): SpecResult =>
      parseDeploymentChange(body, deployment, rules()),
  }
}

export type CredentialsResult =
  | { readonly kind: 'valid'; readonly credentials: AccessKeyPair | null }
  | InvalidDeployment

/** The credentials of a call to a deployment that exists. They are ignored if it has no object storage. */
export const parseCredentials = (body: unknown, { storage }: DeploymentSpec): CredentialsResult => {
  const fields = toFields(body)
  if (!fields) return MALFORMED_BODY
  if (!storage) return { kind: 'valid', credentials: null }
  const { data, error } = deploymentCredentials.safeParse(fields)
  if (error) return { kind: 'invalid-deployment', faults: firstFaultPerField(toFieldFaults(error)) }
  return {
    kind: 'valid',
    credentials: { accessKey: data.objectStorageAccessKey, secretKey: data.objectStorageSecretKey },
  }
}

/** A spec as stored. It shows whether there were credentials, but not their values. */
export interface DeploymentRecord extends DeploymentSpec {
  readonly objectStorageAccessKey: string
  readonly objectStorageSecretKey: string
  readonly plan?: ConfirmedPlan
}

const redact = (key: string): string => (key === '' ? '' : redacted)

export const toRecord = (spec: DeploymentSpec, credentials: AccessKeyPair | null): DeploymentRecord => ({
  ...spec,
  objectStorageAccessKey: redact(credentials?.accessKey ?? ''),
  objectStorageSecretKey: redact(credentials?.secretKey ?? ''),
})

/** Drops the redacted fields, so that nothing mistakes them for credentials. */
export const fromRecord = (record: DeploymentRecord): DeploymentSpec => {
  const { objectStorageAccessKey: _access, objectStorageSecretKey: _secret, plan: _plan, ...spec } = record
  return spec
}
