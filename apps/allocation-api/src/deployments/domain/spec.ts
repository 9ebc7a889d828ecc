import {
  canonicalName,
  deploymentCommon,
  deploymentDomain,
  deploymentStorage,
  type FieldFault,
  firstFaultPerField,
  redacted,
  toFieldFaults,
} from '@pool/contract'
import type { PoolName } from '../../allocation/domain/types.ts'
import { isJsonObject } from '../../lib/json.ts'
import { type BucketNameResult, toFqdn, validateName, validatePool } from '../../naming/naming.ts'
import type { AccessKeyPair, DeploymentSpec, InvalidDeployment } from './types.ts'

export interface SpecRules {
  /** The provider that brings object storage, as written in `providers`. */
  readonly storageProvider: string
  readonly toBucketName: (fqdn: string) => BucketNameResult
  readonly managedDomains: readonly string[]
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

/** The managed pool that contains the name, or is the name, if any. */
const findEnclosingPool = (fqdn: string, managedDomains: readonly string[]): string | undefined => {
  const labels = fqdn.split('.')
  return labels.map((_, at) => labels.slice(at).join('.')).find(suffix => managedDomains.includes(suffix))
}

/** Reports an unmanaged pool even if other invalid fields prevented parsing of the section. */
const validatePoolField = (pool: unknown, mode: unknown, managedDomains: readonly string[]): readonly FieldFault[] => {
  if (mode !== 'pool' || typeof pool !== 'string' || canonicalName(pool) === '') return []
  const rejection = validatePool(canonicalName(pool), managedDomains)
  return rejection ? [{ field: 'sovereignPoolDomain', detail: rejection.detail }] : []
}

/**
 * The FQDN of a deployment. A customer's own domain must not lie in a pool: the name would be in use without being
 * allocated.
 */
const parseDomain = (body: Readonly<Record<string, unknown>>, managedDomains: readonly string[]): DomainResult => {
  const parsed = deploymentDomain.safeParse(body)
  if (!parsed.success) {
    const poolFaults = validatePoolField(body.sovereignPoolDomain, body.sovereignDomainMode, managedDomains)
    return invalid(...toFieldFaults(parsed.error), ...poolFaults)
  }
  if (parsed.data.sovereignDomainMode === 'pool') {
    const { sovereignPoolDomain: poolDomain, sovereignSubdomain: subdomain } = parsed.data
    const rejection = validateName(poolDomain, subdomain, managedDomains)
    if (!rejection) return { kind: 'valid', fqdn: toFqdn(poolDomain, subdomain), name: { poolDomain, subdomain } }
    const field = rejection.kind === 'reserved' ? 'sovereignSubdomain' : 'sovereignPoolDomain'
    return invalid({ field, detail: rejection.detail })
  }
  const { sovereignFQDN: fqdn } = parsed.data
  const pool = findEnclosingPool(fqdn, managedDomains)
  if (pool === undefined) return { kind: 'valid', fqdn, name: null }
  const detail = `sovereignFQDN is in the pool ${pool}; use sovereignDomainMode "pool" to allocate a name there.`
  return invalid({ field: 'sovereignFQDN', detail })
}

/** Works on an otherwise invalid list too, so that the storage section is validated in the same response. */
const includesProvider = (providers: unknown, wanted: string): boolean =>
  Array.isArray(providers) &&
  providers.some(provider => typeof provider === 'string' && canonicalName(provider) === wanted)

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
  { storageProvider, toBucketName, managedDomains }: SpecRules,
): SpecResult => {
  if (!isJsonObject(body)) {
    const detail = 'The body must be a JSON object with the fields of a deployment.'
    return { kind: 'invalid-deployment', faults: [{ field: '', detail }] }
  }
  const common = deploymentCommon.safeParse(body)
  const domain = parseDomain(body, managedDomains)
  const storage = includesProvider(body.providers, storageProvider) ? deploymentStorage.safeParse(body) : null
  const bucket = storage && domain.kind === 'valid' ? toBucketName(domain.fqdn) : null
  if (!common.success || domain.kind === 'invalid' || storage?.success === false || bucket?.kind === 'invalid') {
    const sections = [common, storage].flatMap(section => (section?.error ? toFieldFaults(section.error) : []))
    const named = domain.kind === 'invalid' ? domain.faults : toBucketFaults(domain, bucket)
    return { kind: 'invalid-deployment', faults: firstFaultPerField([...sections, ...named]) }
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
