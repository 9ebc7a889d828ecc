import type { Result } from './domain/election.ts'

/** The result of one request, with the error for logs. */
export type CallResult = Result & { readonly error?: unknown }

export interface LeaseWriteInput {
  readonly holder: string
  /** The generation that the write replaces; 0: the slot was never written. */
  readonly generation: number
  readonly ttlMs: number
  /** Undefined: a renewal keeps that of the lease. A RenewalBatch does not send it. */
  readonly value?: string | undefined
}

export interface LeaseCallOptions {
  readonly signal: AbortSignal
}

/**
 * What an elector needs of a lease witness: each call sends one request and never repeats it. A call does not reject; an
 * aborted write is `unknown`, an aborted read `failed`.
 */
export interface LeaseCalls {
  read(slot: string, options: LeaseCallOptions): Promise<CallResult>
  /** Responds when the lease is released or has expired, at the latest after `waitSeconds`. */
  waitUntilVacant(slot: string, waitSeconds: number, options: LeaseCallOptions): Promise<CallResult>
  acquire(slot: string, write: LeaseWriteInput, options: LeaseCallOptions): Promise<CallResult>
  renew(slot: string, write: LeaseWriteInput, options: LeaseCallOptions): Promise<CallResult>
  release(slot: string, write: Omit<LeaseWriteInput, 'ttlMs' | 'value'>, options: LeaseCallOptions): Promise<CallResult>
}
