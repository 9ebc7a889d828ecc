import type { Allocation } from '@pool/contract'
import { type NameRejection, validatePool } from '../naming/naming.ts'
import type { PoolName, Rejection } from './domain/types.ts'
import type { Reader } from './reader.ts'

export interface GetDependencies {
  readonly reader: Pick<Reader, 'get'>
  readonly managedDomains: readonly string[]
}

export type GetOutcome =
  | { readonly kind: 'found'; readonly allocation: Allocation }
  | NameRejection
  | Rejection<'not-found'>

export const get =
  ({ reader, managedDomains }: GetDependencies) =>
  async (name: PoolName): Promise<GetOutcome> => {
    const refusal = validatePool(name.poolDomain, managedDomains)
    if (refusal) return refusal
    const allocation = await reader.get(name)
    return allocation ? { kind: 'found', allocation } : { kind: 'not-found' }
  }
