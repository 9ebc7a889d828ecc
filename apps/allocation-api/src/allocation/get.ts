import type { Allocation } from '@pool/contract'
import type { Name, Refusal } from './allocation.ts'
import { type NameRefusal, refusePool } from './names.ts'
import type { Reader } from './reader.ts'

export interface GetDependencies {
  readonly reader: Pick<Reader, 'get'>
  readonly managedDomains: readonly string[]
}

export type GetOutcome =
  | { readonly kind: 'found'; readonly allocation: Allocation }
  | NameRefusal
  | Refusal<'not-found'>

export const get =
  ({ reader, managedDomains }: GetDependencies) =>
  async (name: Name): Promise<GetOutcome> => {
    const refusal = refusePool(name.poolDomain, managedDomains)
    if (refusal) return refusal
    const allocation = await reader.get(name)
    return allocation ? { kind: 'found', allocation } : { kind: 'not-found' }
  }
