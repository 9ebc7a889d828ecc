import type { FieldFault } from '@pool/contract'
import type { Rejection } from '../../allocation/domain/types.ts'

/** Every faulty field once, in the documented order. */
export interface InvalidDeployment {
  readonly kind: 'invalid-deployment'
  readonly faults: readonly FieldFault[]
}

/** What is decided about the wish for a deployment; each kind but the first is the error code of its answer. */
export type CreateDecision =
  | { readonly kind: 'created'; readonly id: string }
  | InvalidDeployment
  | Rejection<'subdomain-conflict' | 'bucket-conflict' | 'fqdn-conflict'>
  | {
      readonly kind: 'object-storage-unavailable' | 'provisioning-unavailable' | 'too-many-attempts'
      readonly detail: string
      readonly retryAfterSeconds?: number
    }

export type CreateOutcome = CreateDecision | Rejection<'idempotency-key-reused'>
