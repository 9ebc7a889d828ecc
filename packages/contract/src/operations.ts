import { type AllocationOperation, defineOperations } from './allocation-operation.ts'
import { callOperations } from './call-operations.ts'
import { protocolOperations } from './protocol-operations.ts'

/** The operations of the allocation API, in the order in which their paths are matched. */
export const operations = { ...callOperations, ...defineOperations(protocolOperations) }

export type OperationId = keyof typeof operations

/** The operations without their types. */
export const operationList: readonly AllocationOperation[] = Object.values(operations)
