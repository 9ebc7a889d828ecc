import { type AllocationClient, ClientError, ProblemError, UnexpectedResponseError } from '@pool/client/allocation'
import type { FollowedLog } from '../checks/log-stream.ts'
import type { Replica } from '../environment/replica.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { ApiClient } from './api-client.ts'

export interface FollowOptions {
  readonly client: ApiClient
  /** Used in this order, one for each connection. */
  readonly replicas: readonly Replica[]
  readonly invariants: InvariantChecker
  readonly withinMs: number
}

/** Reads a deployment's log with the client, which reconnects, until `done`. */
export const followLog = async (
  reader: string,
  deployment: string,
  { client, replicas, invariants, withinMs }: FollowOptions,
): Promise<FollowedLog> => {
  const lines: { id: number; data: string }[] = []
  let isDone = false
  const signal = AbortSignal.timeout(withinMs)
  const [first] = replicas
  if (!first) throw new Error('no replica')
  const chooseReplica = (attempt: number) => replicas[(attempt - 1) % replicas.length] ?? first
  const read = async (api: AllocationClient) => {
    for await (const entry of api.followLogs({ id: deployment }, { signal, deadlineMs: withinMs })) {
      if (entry.kind === 'done') isDone = true
      else lines.push({ id: Number(entry.id), data: JSON.stringify(entry.line) })
    }
  }
  try {
    await client.run({ operation: 'follow', isStream: true, chooseReplica }, read)
  } catch (error) {
    // The deployment was deleted; or the time is over.
    const isExpected = error === signal.reason || (error instanceof ProblemError && error.status === 404)
    if (error instanceof UnexpectedResponseError) invariants.reportAnomaly(`follow ${deployment}: ${error.message}`)
    else if (!isExpected && !(error instanceof ClientError)) throw error
  }
  return { deployment, reader, lines, isDone }
}
