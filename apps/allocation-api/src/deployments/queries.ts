import type { Deployment, DeploymentStatus } from '@pool/contract'
import type { Rejection } from '../allocation/domain/types.ts'
import type { DeploymentStore } from './repository.ts'

export type GetOutcome = { readonly kind: 'found'; readonly deployment: Deployment } | Rejection<'not-found'>

export const get =
  ({ store }: { readonly store: Pick<DeploymentStore, 'read'> }) =>
  async (id: string): Promise<GetOutcome> => {
    const deployment = await store.read(id)
    return deployment ? { kind: 'found', deployment } : { kind: 'not-found' }
  }

export interface ListQuery {
  readonly status?: DeploymentStatus | undefined
  readonly limit?: number | undefined
  /** The number of the deployment before which to begin. */
  readonly cursor?: string | undefined
}

export interface Listed {
  readonly deployments: readonly Deployment[]
  /** The position to go on from; absent: there is nothing more. */
  readonly nextCursor?: string
}

const LIMIT = 100
const MOST = 1_000

/** Newest first. */
export const list =
  ({ store }: { readonly store: Pick<DeploymentStore, 'page'> }) =>
  async ({ status, limit = LIMIT, cursor }: ListQuery): Promise<Listed> => {
    const size = Math.min(limit, MOST)
    const before = cursor === undefined ? undefined : Number(cursor)
    const page = await store.page({ status, before, limit: size + 1 })
    const shown = page.slice(0, size)
    const last = shown.at(-1)
    const deployments = shown.map(({ deployment }) => deployment)
    return page.length > size && last ? { deployments, nextCursor: String(last.number) } : { deployments }
  }
