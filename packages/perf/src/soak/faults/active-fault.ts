import type { HeldLocks } from '../checks/errors-attributable.ts'

/** A fault that was injected and has not ended. */
export interface ActiveFault {
  readonly end: () => Promise<void> | void
  /** Only for edited records: whether the service has restored them. */
  readonly isRepaired?: () => Promise<boolean>
  readonly locks?: Pick<HeldLocks, 'table' | 'names'>
}
