import type { Operation } from './domain/lifecycle.ts'
import { CANCELLED, toRetryAdvice } from './domain/run.ts'

/** Another process runs the deployment now, or may do so: no write of this run counts any more. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError'
}

/** Ends the operation as `failed`. The message is the reason that users see. */
export class DeploymentFailedError extends Error {
  override readonly name: string = 'DeploymentFailedError'
}

export class CancelledError extends DeploymentFailedError {
  override readonly name = 'CancelledError'
  constructor() {
    super(CANCELLED)
  }
}

export class ReservationLostError extends DeploymentFailedError {
  override readonly name = 'ReservationLostError'
  constructor() {
    super('Its name was released, or reserved by another client, during the deployment.')
  }
}

/** Fails the operation only if it has credentials; without them, another process can resume it. */
export class ShutdownError extends DeploymentFailedError {
  override readonly name = 'ShutdownError'
  constructor(operation: Operation) {
    super(`The service was stopped during this deployment. ${toRetryAdvice(operation)}`)
  }
}

export type StopError = LeaseLostError | CancelledError | ReservationLostError | ShutdownError
