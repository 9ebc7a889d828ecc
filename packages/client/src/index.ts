export * from './allocation.ts'
export * from './leases/index.ts'
