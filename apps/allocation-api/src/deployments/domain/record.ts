import { redacted } from '@pool/contract'
import type { DeploymentSpec, ObjectStorageCredentials } from './types.ts'

/** An order as it is stored. It tells whether there was a key, and never which. */
export interface OrderRecord extends DeploymentSpec {
  readonly objectStorageAccessKey: string
  readonly objectStorageSecretKey: string
}

const withoutKey = (key: string): string => (key === '' ? '' : redacted)

export const recordOf = (order: DeploymentSpec, keys: ObjectStorageCredentials | null): OrderRecord => ({
  ...order,
  objectStorageAccessKey: withoutKey(keys?.accessKey ?? ''),
  objectStorageSecretKey: withoutKey(keys?.secretKey ?? ''),
})

/** The order, and nothing that could be taken for a key: those of a run that was left are gone with its process. */
export const orderOfRecord = (record: OrderRecord): DeploymentSpec => {
  const { objectStorageAccessKey: _access, objectStorageSecretKey: _secret, ...order } = record
  return order
}
