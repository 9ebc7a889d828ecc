import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ProvisioningRequest, StateRequest } from '../provisioner.ts'
import {
  findStateMismatch,
  isBucketResource,
  parseState,
  type State,
  sortState,
  toInitialState,
} from './domain/state.ts'
import { CommandFailedError, type TerraformSession } from './session.ts'

const INITIAL_STATE = 'initial.tfstate'

/** The state as its backend has it, if that can be the one that earlier runs wrote. */
export const readState = async (
  session: TerraformSession,
  { knownState }: Pick<StateRequest, 'knownState'>,
): Promise<State> => {
  const state = parseState(await session.capture(['state', 'pull']))
  const mismatch = findStateMismatch(state.version, knownState)
  if (mismatch !== null) throw new CommandFailedError(mismatch)
  return state
}

/** Reports what the state is and whether it has the bucket. */
const report = async (state: State, request: ProvisioningRequest): Promise<void> => {
  if (state.version) await request.onState?.(state.version)
  // The next report repeats what could not be recorded.
  if (sortState(state.resources, request.bucket).hasKeptBucket) await request.onBucketCreated?.().catch(() => {})
}

/**
 * The state of an apply, reported before anything changes. A missing one is written first: from then on, no state means
 * that the state was lost.
 */
export const establishState = async (session: TerraformSession, request: ProvisioningRequest): Promise<State> => {
  let state = await readState(session, request)
  if (state.version === null) {
    await writeFile(join(session.cwd, INITIAL_STATE), toInitialState(randomUUID()), { mode: 0o600 })
    await session.capture(['state', 'push', '-lock-timeout=60s', INITIAL_STATE])
    state = await readState(session, request)
  }
  await report(state, request)
  return state
}

/**
 * Removes the taint of the bucket, which an apply left that failed after it had created the bucket: the next one keeps the
 * bucket and completes it. Returns the state and whether it was changed.
 */
export const untaintBucket = async (
  session: TerraformSession,
  request: ProvisioningRequest,
  state: State,
): Promise<{ state: State; isUntainted: boolean }> => {
  const { taintedBuckets } = sortState(state.resources, request.bucket)
  if (taintedBuckets.length === 0) return { state, isUntainted: false }
  for (const address of taintedBuckets) {
    await session.capture(['untaint', '-no-color', '-lock-timeout=60s', address])
  }
  const after = await readState(session, request)
  await report(after, request)
  return { state: after, isUntainted: true }
}

const hasTaintedBucket = (state: State, bucket: string | null): boolean =>
  sortState(state.resources, bucket).taintedBuckets.length > 0

/** Runs an apply or a destroy of the state `before`, and reports what it has become, also after a failure. */
export const changeState = async (
  session: TerraformSession,
  phase: 'apply' | 'destroy',
  args: readonly string[],
  request: ProvisioningRequest,
  before: State,
): Promise<Readonly<Record<string, unknown>>> => {
  const { bucket, onLock, onBucketCreated } = request
  const reportAfter = async (): Promise<State | null> => {
    const text = await session.pullStateAtEnd()
    const after = text === null ? null : parseState(text)
    // A state that someone replaced in the meantime is for the next run to reject.
    if (after === null || findStateMismatch(after.version, before.version) !== null) return null
    await report(after, request)
    return after
  }
  const execution = session.execute(phase, args, {
    ...(onLock && { onLock }),
    onCreated: ({ type, id }) => {
      if (isBucketResource(type, { id }, bucket)) void onBucketCreated?.().catch(() => {})
    },
  })
  try {
    const outputs = await execution
    await reportAfter()
    return outputs
  } catch (error) {
    const after = await reportAfter()
    if (!(error instanceof CommandFailedError) || after === null || !hasTaintedBucket(after, bucket)) throw error
    throw new CommandFailedError(
      `${error.message} The bucket ${bucket} was created before the failure. Remove the cause, then apply again: the bucket is kept.`,
    )
  }
}
