import { holder as holderSchema, putLeaseRequest } from '@pool/contract/lease'
import { leaseFaultOf } from '@pool/contract/lease-problem'
import type { Context } from 'hono'
import type * as z from 'zod'
import type { LeaseRequest } from '../lease/lease.ts'
import { writePrecondition } from '../lease/precondition.ts'
import { type SlotAddress, slotAddress } from '../lease/slot-name.ts'
import { jsonOf } from './body.ts'
import type { Refused } from './errors.ts'
import type { HttpEnv } from './types.ts'

export type Parsed<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly refused: Refused }

const accept = <Value>(value: Value): Parsed<Value> => ({ ok: true, value })
const refuse = (refused: Refused): Parsed<never> => ({ ok: false, refused })

/** The value, or the first fault in the order in which the contract decides. */
export const parse = <Schema extends z.ZodType>(schema: Schema, value: unknown): Parsed<z.infer<Schema>> => {
  const result = schema.safeParse(value)
  if (result.success) return accept(result.data)
  const { code, detail } = leaseFaultOf(result.error)
  return refuse({ kind: code, detail })
}

/** The slot of `/<resource>/<slot>`. The path is taken as it came, for only we decode it, and once. */
export const slotOf = (c: Context<HttpEnv>): Parsed<SlotAddress> => {
  const { path } = c.req
  const at = slotAddress(path.slice(path.indexOf('/', 1) + 1))
  if (!at) return refuse({ kind: 'invalid-slot' })
  c.set('slot', at.slot)
  return accept(at)
}

const generationOf = (c: Context<HttpEnv>, mayCreate: boolean): Parsed<number> => {
  const precondition = writePrecondition(c.req.header('If-Match'), c.req.header('If-None-Match'), { mayCreate })
  switch (precondition.kind) {
    case 'generation':
      return accept(precondition.generation)
    case 'missing':
      return refuse({ kind: 'missing-if-match' })
    case 'invalid':
      return refuse({ kind: precondition.header === 'If-Match' ? 'invalid-if-match' : 'invalid-if-none-match' })
  }
}

/** An empty header says as much as none. */
const holderHeader = (c: Context<HttpEnv>): string | undefined => c.req.header('X-Holder') || undefined

/** A PUT: acquire or renew. The holder comes in the body or in X-Holder. */
export const putOf = (c: Context<HttpEnv>): Parsed<LeaseRequest> => {
  const generation = generationOf(c, true)
  if (!generation.ok) return generation
  const json = jsonOf(c.get('body'))
  if (!json) return refuse({ kind: 'invalid-json' })
  const body = parse(putLeaseRequest, json.value)
  if (!body.ok) return body
  const { op, ttlSeconds } = body.value
  const header = holderHeader(c)
  const holder = parse(holderSchema, body.value.holder ?? header)
  if (!holder.ok) return holder
  if (header !== undefined && header !== holder.value) return refuse({ kind: 'holder-mismatch' })
  const ttlMs = Math.round(ttlSeconds * 1_000)
  return accept({ kind: op, holder: holder.value, ttlMs, generation: generation.value })
}

/** A DELETE: release, by the holder that X-Holder names. */
export const releaseOf = (c: Context<HttpEnv>): Parsed<LeaseRequest> => {
  const generation = generationOf(c, false)
  if (!generation.ok) return generation
  const header = holderHeader(c)
  if (header === undefined) return refuse({ kind: 'missing-x-holder' })
  const holder = parse(holderSchema, header)
  if (!holder.ok) return holder
  return accept({ kind: 'release', holder: holder.value, generation: generation.value })
}
