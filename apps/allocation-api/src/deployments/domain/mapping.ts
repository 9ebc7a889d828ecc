import type { Deployment, DeploymentResult, DeploymentStatus } from '@pool/contract'
import type { OrderRecord } from './record.ts'

/** A row of `deployments` as it is selected to be shown. */
export interface DeploymentRow {
  readonly id: string
  readonly number: number
  readonly status: DeploymentStatus
  readonly request: OrderRecord
  readonly startedAt: Date
  readonly finishedAt: Date | null
  readonly numEvents: number
  readonly error: string | null
  readonly result: DeploymentResult | null
}

export const deploymentOf = (row: DeploymentRow): Deployment => {
  const { sovereignFQDN, region, storage } = row.request
  return {
    id: row.id,
    status: row.status,
    startedAt: row.startedAt.toISOString(),
    finishedAt: row.finishedAt?.toISOString() ?? null,
    sovereignFQDN,
    region,
    objectStorageRegion: storage?.region ?? '',
    objectStorageBucket: storage?.bucket ?? '',
    numEvents: row.numEvents,
    ...(row.error === null ? {} : { error: row.error }),
    ...(row.result === null ? {} : { result: row.result }),
  }
}
