import {
  canonicalName,
  deploymentCommon,
  deploymentFaultsOf,
  deploymentStorage,
  type FieldFault,
  inDocumentedOrder,
} from '@pool/contract'
import { isJsonObject } from '../../lib/json.ts'
import type { BucketDecision } from '../../naming/bucket-name.ts'
import type { InvalidDeployment } from './create-outcome.ts'
import { type Domain, domainOf } from './parse-domain.ts'
import type { DeploymentSpec, ObjectStorageCredentials } from './types.ts'

export interface OrderRules {
  /** The provider that brings object storage, as it stands in `providers`. */
  readonly storageProvider: string
  readonly bucketOf: (fqdn: string) => BucketDecision
  readonly managedDomains: readonly string[]
}

/** `keys` only with storage. */
export type Ordered =
  | { readonly kind: 'order'; readonly order: DeploymentSpec; readonly keys: ObjectStorageCredentials | null }
  | InvalidDeployment

/** Also of a list with other faults, so that those of the storage are told at once with them. */
const brings = (providers: unknown, wanted: string): boolean =>
  Array.isArray(providers) && providers.some(one => typeof one === 'string' && canonicalName(one) === wanted)

const bucketFaults = (domain: Domain, bucket: BucketDecision | null): readonly FieldFault[] => {
  if (domain.kind !== 'domain' || bucket?.kind !== 'refused') return []
  return [{ field: domain.name ? 'sovereignSubdomain' : 'sovereignFQDN', detail: bucket.reason }]
}

/**
 * What a request asks for, in canonical form, its keys apart; or every faulty field at once. Whether name, FQDN and
 * bucket are free is the database's to say. Without the storage provider its fields are not looked at.
 */
export const parseSpec = (body: unknown, { storageProvider, bucketOf, managedDomains }: OrderRules): Ordered => {
  if (!isJsonObject(body)) {
    const detail = 'The body must be a JSON object with the fields of a deployment.'
    return { kind: 'invalid-deployment', faults: [{ field: '', detail }] }
  }
  const common = deploymentCommon.safeParse(body)
  const domain = domainOf(body, managedDomains)
  const storage = brings(body.providers, storageProvider) ? deploymentStorage.safeParse(body) : null
  const bucket = storage && domain.kind === 'domain' ? bucketOf(domain.fqdn) : null
  if (!common.success || domain.kind === 'faulty' || storage?.success === false || bucket?.kind === 'refused') {
    const sections = [common, storage].flatMap(section => (section?.error ? deploymentFaultsOf(section.error) : []))
    const named = domain.kind === 'faulty' ? domain.faults : bucketFaults(domain, bucket)
    return { kind: 'invalid-deployment', faults: inDocumentedOrder([...sections, ...named]) }
  }
  const { data: given } = storage ?? {}
  const { fqdn, name } = domain
  const order: DeploymentSpec = {
    ...common.data,
    sovereignFQDN: fqdn,
    name,
    storage: given && bucket ? { region: given.objectStorageRegion, bucket: bucket.name } : null,
  }
  const keys = given ? { accessKey: given.objectStorageAccessKey, secretKey: given.objectStorageSecretKey } : null
  return { kind: 'order', order, keys }
}
