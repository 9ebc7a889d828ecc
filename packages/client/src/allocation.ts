export * from './errors.ts'
export type { AttemptEnd, AttemptInfo, CallEnd, CallInfo, ClientHooks } from './hooks.ts'
export type { CallOptions, ClientOptions } from './options.ts'
export type { Timing } from './timing.ts'
