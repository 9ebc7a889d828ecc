/** `reason` is a sentence for users, without secrets. */
export interface ProvisioningFailed {
  readonly kind: 'failed'
  readonly reason: string
  /** Nothing was done, because `planHash` is that of another plan. */
  readonly isPlanChanged?: boolean
}

/**
 * Rejects any call of a provisioner: the machine, or the process that carries out the calls, has failed. `message` is a
 * sentence for users, without secrets.
 */
export class ProvisionerFailedError extends Error {
  override readonly name = 'ProvisionerFailedError'
}

/** For a call that ends as `failed` then too. */
export const toFailed = (error: unknown): ProvisioningFailed => {
  if (!(error instanceof ProvisionerFailedError)) throw error
  return { kind: 'failed', reason: error.message }
}
