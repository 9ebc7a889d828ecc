import type { Context } from 'hono'
import type { Copies, Witness } from '../lease-service.ts'
import type { HttpEnv } from './types.ts'

/** What the routes work with: made for each request, for a worker gets its bindings with it. */
export interface Deps {
  readonly witness: (c: Context<HttpEnv>) => Witness
  readonly copies: (c: Context<HttpEnv>) => Copies
}
