export * from '../common.ts'
export {
  AllocationClient,
  type CommittedName,
  type LogEntry,
  NotPublishedError,
  type ReserveAndCommitOptions,
  type WaitOptions,
} from './client.ts'
export type { Params, Result, WriteOptions } from './params.ts'
