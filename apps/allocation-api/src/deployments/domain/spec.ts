import {
  canonicalName,
  deploymentCommon,
  deploymentCredentials,
  deploymentDomain,
  deploymentStorage,
  type FieldFault,
  firstFaultPerField,
  redacted,
  toFieldFaults,
} from '@pool/contract'
import type { PoolName } from '../../allocation/domain/types.ts'
import { isJsonObject } from '../../lib/json.ts'
import { findNearest } from '../../lib/nearest.ts'
import { type BucketNameResult, type Pools, toFqdn, validateName, validateOpenPool } from '../../naming/naming.ts'
import type { AccessKeyPair, DeploymentSpec, InvalidDeployment } from './types.ts'

export interface SpecRules {
  /** The provider that brings object storage, as written in `providers`. */
  readonly storageProvider: string
  /** The names that `providers` may contain. */
  readonly knownProviders: readonly string[]
  readonly toBucketName: (fqdn: string) => BucketNameResult
  readonly pools: Pools
}

export type SpecResult =
  | {
      readonly kind: 'valid'
      readonly spec: DeploymentSpec
      /** Null without object storage. */
      readonly credentials: AccessKeyPair | null
    }
  | InvalidDeployment

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

/**
 * Parses a request, and reports all invalid fields. The database decides whether name, FQDN and bucket are
 * free. Without the storage provider, the storage fields are ignored.
 */
export const parseDeploymentSpec = (
  body: unknown,
  { storageProvider, knownProviders, toBucketName, pools }: SpecRules,
): SpecResult => {
  if (!isJsonObject(body)) {
    const detail = 'The body must be a JSON object with the fields of a deployment.'
    return { kind: 'invalid-deployment', faults: [{ field: '', detail }] }
  }
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
  return { kind: 'valid', spec, credentials }
}

export type CredentialsResult =
  | { readonly kind: 'valid'; readonly credentials: AccessKeyPair | null }
  | InvalidDeployment

/** The credentials of a call to a deployment that exists. Ignored if it has no object storage. */
export const parseCredentials = (body: unknown, { storage }: DeploymentSpec): CredentialsResult => {
  if (!storage) return { kind: 'valid', credentials: null }
  const { data, error } = deploymentCredentials.safeParse(isJsonObject(body) ? body : {})
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
}

const redact = (key: string): string => (key === '' ? '' : redacted)

export const toRecord = (spec: DeploymentSpec, credentials: AccessKeyPair | null): DeploymentRecord => ({
  ...spec,
  objectStorageAccessKey: redact(credentials?.accessKey ?? ''),
  objectStorageSecretKey: redact(credentials?.secretKey ?? ''),
})

/** Drops the redacted fields, so that nothing mistakes them for credentials. */
export const fromRecord = (record: DeploymentRecord): DeploymentSpec => {
  const { objectStorageAccessKey: _access, objectStorageSecretKey: _secret, ...spec } = record
  return spec
}
