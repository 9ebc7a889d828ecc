import type { DeploymentResult } from '@pool/contract'
import { sanitizeText } from '../lib/sanitize-text.ts'
import { resultOf } from './domain/outputs.ts'
import { CANCELLED, nextStep } from './domain/resume.ts'
import { type StorageProvider, secretsOf, variablesOf } from './domain/tfvars.ts'
import type { Job, Line, ObjectStorageCredentials, Run } from './domain/types.ts'
import type { Provisioner } from './provisioner.ts'
import type { DeploymentStore } from './repository.ts'
import type { Names } from './reservation.ts'

/** Why a run is to stop. `lost`: others work on the deployment now, or may do so. */
export type StopReason = 'cancelled' | 'stopping' | 'lost' | 'name-lost'

export interface RunDependencies {
  readonly store: Pick<DeploymentStore, 'begin' | 'recordResult' | 'condemn' | 'failed' | 'ready' | 'giveUp'>
  readonly names: Pick<Names, 'take' | 'free'>
  readonly infrastructure: Pick<Provisioner, 'make' | 'clear'>
  readonly storage: StorageProvider
  /** Does it until it is done, however often the database is away; throws when the lease is lost meanwhile. */
  readonly insist: <Result>(step: () => Promise<Result>) => Promise<Result>
  readonly tell: (line: Line) => void
  /** All that was told is stored, as far as the lease still holds. */
  readonly told: () => Promise<void>
  readonly signal: AbortSignal
  readonly onDefect: (error: unknown) => void
}

export type RunOutcome = 'ready' | 'failed' | 'handed-over' | 'lost'

/** The lease is somebody else's: nothing that this run does counts any more. */
export class RunLost extends Error {
  override readonly name = 'RunLost'
}

const reasonOf = (signal: AbortSignal): StopReason => signal.reason as StopReason

const explained: Readonly<Record<Exclude<StopReason, 'lost'>, string>> = {
  cancelled: CANCELLED,
  stopping: 'The service was stopped while it worked on it. Create it again: what has been made is gone on with.',
  'name-lost': 'Its name was released, or reserved by others, while it was being made.',
}

/**
 * Works on one deployment to its end: infrastructure, then the name, then `ready`; or the name freed, then `failed`, so
 * that of a failed deployment nothing is held any more. Each step can be repeated by whoever takes it up after a crash.
 */
export const runDeployment = async (
  job: Job,
  keys: ObjectStorageCredentials | null,
  deps: RunDependencies,
): Promise<RunOutcome> => {
  const { store, names, infrastructure, storage, insist, tell, told, signal, onDefect } = deps
  const run: Run = { id: job.id, generation: job.generation }
  const ours = async (step: () => Promise<boolean>) => {
    if (!(await insist(step))) throw new RunLost()
  }

  const fail = async (why: string): Promise<RunOutcome> => {
    const reason = sanitizeText(why)
    // Decided under the lease before anything is done: another run may have made it ready under this very name.
    await ours(() => store.condemn(run, reason))
    tell({ phase: 'end', level: 'error', message: reason })
    if (job.order.name) tell({ phase: 'release', level: 'info', message: 'The name is freed.' })
    await insist(() => names.free(job))
    await insist(told)
    await ours(() => store.failed(run))
    return 'failed'
  }

  /** What the stop that was asked for comes to. */
  const stopped = async (): Promise<RunOutcome> => {
    const reason = reasonOf(signal)
    if (reason === 'lost') throw new RunLost()
    if (reason !== 'stopping' || job.order.storage) return fail(explained[reason])
    tell({ phase: 'end', level: 'warn', message: 'The service stops here; another process goes on with it.' })
    await insist(told)
    await ours(() => store.giveUp(run))
    return 'handed-over'
  }

  const make = async (): Promise<DeploymentResult | { readonly ended: RunOutcome }> => {
    const { sovereignFQDN } = job.order
    const made = await infrastructure.make(
      {
        id: job.id,
        run: job.generation,
        stateKey: sovereignFQDN,
        variables: variablesOf(job.id, job.order, storage),
        secrets: secretsOf(keys),
      },
      tell,
      signal,
    )
    if (made.kind === 'stopped') return { ended: await stopped() }
    if (made.kind === 'failed') return { ended: await fail(made.reason) }
    const read = resultOf(sovereignFQDN, made.outputs)
    if (read.kind === 'fault') return { ended: await fail(read.reason) }
    await ours(() => store.recordResult(run, read.result))
    return read.result
  }

  const work = async (): Promise<RunOutcome> => {
    const step = nextStep(job, keys)
    if (job.generation > 1) await infrastructure.clear(job.id, job.generation, tell)
    if (step.kind === 'fail') return fail(step.reason)
    if (signal.aborted) return stopped()
    await ours(() => store.begin(run))
    if (job.order.name && job.generation === 1) {
      tell({ phase: 'reserve', level: 'info', message: `The name ${job.order.sovereignFQDN} is reserved.` })
    }
    const result = job.result ?? (await make())
    if ('ended' in result) return result.ended
    // What is up already is worth finishing when the service stops; somebody who cancels wants it gone.
    if (signal.aborted && reasonOf(signal) !== 'stopping') return stopped()
    const taken = await insist(() => names.take(job, result.loadBalancerIP))
    if (taken.kind === 'lost') return fail(taken.reason)
    if (job.order.name) {
      const message = taken.isPublished
        ? 'The name is active and its records are published.'
        : 'The name is active; its records are published as soon as the DNS provider takes them.'
      tell({ phase: 'commit', level: taken.isPublished ? 'info' : 'warn', message })
    }
    tell({ phase: 'end', level: 'info', message: 'The deployment is ready.' })
    await insist(told)
    if (await insist(() => store.ready(run))) return 'ready'
    // Cancelled in the last moment; or the lease is lost, which is then found out.
    return fail(CANCELLED)
  }

  try {
    return await work().catch((error: unknown) => {
      if (error instanceof RunLost) throw error
      onDefect(error)
      return fail('Something failed on our side; the log has more under the id of the deployment.')
    })
  } catch (error) {
    if (!(error instanceof RunLost)) onDefect(error)
    return 'lost'
  }
}
