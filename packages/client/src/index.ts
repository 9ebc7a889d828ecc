export * from './allocation/index.ts'
export * from './leases/index.ts'
