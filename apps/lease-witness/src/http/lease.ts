import { type Lease, type LeaseConflict, type LeaseHistory, WAIT } from '@pool/contract/lease'
import { type Context, Hono } from 'hono'
import { includesGeneration, type KnownGenerations, type LeaseWrite } from '../lease/lease.ts'
import {
  type ParsedRequest,
  parseMaxWaitSeconds,
  parsePut,
  parseRead,
  parseRelease,
  parseSlot,
  type SlotAddress,
  type WriteHeaders,
} from '../lease/request.ts'
import type { ObservedLease, ReadOutcome, WriteOutcome } from '../lease-service.ts'
import type { WitnessSettings } from '../settings.ts'
import { canActAs, canRead, canWrite } from './domain/token-policies.ts'
import { errorResponse, forbiddenResponse, neverWrittenResponse, unavailableResponse } from './errors.ts'
import { takeBody } from './middleware.ts'
import type { Services, WitnessHttpEnv } from './types.ts'

/** The slot of `/<resource>/<slot>`, also noted for the access log. */
const slotAddress = (c: Context<WitnessHttpEnv>): SlotAddress | undefined => {
  const { path } = c.req
  const address = parseSlot(path.slice(path.indexOf('/', 1) + 1))
  if (address) c.set('slot', address.slot)
  return address
}

const setETag = (c: Context<WitnessHttpEnv>, outcome: string, { generation }: Lease): void => {
  c.set('outcome', outcome)
  c.set('generation', generation)
  c.header('ETag', `"${generation}"`)
}

const leaseResponse = (
  c: Context<WitnessHttpEnv>,
  outcome: string,
  { lease, remainingMs }: ObservedLease,
  status: 200 | 412,
) => {
  setETag(c, outcome, lease)
  if (remainingMs !== undefined) c.header('Lease-Remaining-Ms', String(remainingMs))
  return c.json(lease, status)
}

const conflictResponse = (c: Context<WitnessHttpEnv>, conflict: LeaseConflict, observed: ObservedLease) => {
  c.header('Lease-Conflict', conflict)
  return leaseResponse(c, `rejected-${conflict}`, observed, 412)
}

const readResponse = (c: Context<WitnessHttpEnv>, outcome: ReadOutcome, expected?: KnownGenerations) => {
  switch (outcome.kind) {
    case 'lease':
    case 'not-modified':
      // RFC 9110 section 13.2.2: If-Match is evaluated before If-None-Match.
      if (expected !== undefined && !includesGeneration(expected, outcome.lease.generation))
        return conflictResponse(c, 'generation', outcome)
      if (outcome.kind === 'lease') return leaseResponse(c, 'read', outcome, 200)
      c.set('isRoutine', true)
      setETag(c, outcome.kind, outcome.lease)
      return c.body(null, 304)
    case 'absent':
      return neverWrittenResponse(c)
    default:
      return unavailableResponse(c, outcome)
  }
}

const writeResponse = (c: Context<WitnessHttpEnv>, outcome: WriteOutcome) => {
  switch (outcome.kind) {
    case 'granted':
      return leaseResponse(c, outcome.kind, outcome, 200)
    case 'renewed':
      c.set('isRoutine', true)
      return leaseResponse(c, outcome.kind, outcome, 200)
    case 'released':
      setETag(c, outcome.kind, outcome.lease)
      return c.body(null, 204)
    case 'absent':
      c.set('outcome', 'nothing-to-release')
      return c.body(null, 204)
    case 'rejected':
      return conflictResponse(c, outcome.reason, outcome)
    default:
      return unavailableResponse(c, outcome)
  }
}

/** Whether the slot's object has responded: only then did the wait take place. */
const wasApplied = ({ kind }: ReadOutcome): boolean => kind === 'lease' || kind === 'not-modified' || kind === 'absent'

export const leaseRoutes = ({ MAX_WAIT_SECONDS }: WitnessSettings, { leases }: Services): Hono<WitnessHttpEnv> => {
  const maxWaitSeconds = parseMaxWaitSeconds(MAX_WAIT_SECONDS) ?? WAIT.default
  const app = new Hono<WitnessHttpEnv>()

  app.get('/:slot{.+}', async c => {
    const address = slotAddress(c)
    if (!address) return errorResponse(c, { code: 'invalid-slot' })
    if (!canRead(c.get('caller').grant, address.slot)) return forbiddenResponse(c)
    const headers = {
      ifMatch: c.req.header('If-Match'),
      ifNoneMatch: c.req.header('If-None-Match'),
      prefer: c.req.header('Prefer'),
    }
    const request = parseRead(headers, c.req.query(), maxWaitSeconds)
    if (!request.ok) return errorResponse(c, request.error)
    c.set('request', { ...request.value })
    const { known, expected, wait } = request.value
    if (!wait) return readResponse(c, await leases.read(address, known), expected)
    const { condition, seconds } = wait
    const { signal } = c.req.raw
    const caller = c.get('caller').name
    const outcome = await leases.wait(address, { caller, condition, known, maxMs: seconds * 1_000, signal })
    c.set('isRoutine', true)
    if (wasApplied(outcome)) c.header('Preference-Applied', `wait=${seconds}`)
    return readResponse(c, outcome)
  })

  const write = async (
    c: Context<WitnessHttpEnv>,
    parse: (headers: WriteHeaders, body: Uint8Array) => ParsedRequest<LeaseWrite>,
  ) => {
    const address = slotAddress(c)
    if (!address) return errorResponse(c, { code: 'invalid-slot' })
    const { name, grant } = c.get('caller')
    if (!canWrite(grant, address.slot)) return forbiddenResponse(c)
    const headers = {
      ifMatch: c.req.header('If-Match'),
      ifNoneMatch: c.req.header('If-None-Match'),
      holder: c.req.header('X-Holder'),
    }
    const request = parse(headers, await takeBody(c))
    if (!request.ok) return errorResponse(c, request.error)
    if (!canActAs(grant, request.value.holder)) return forbiddenResponse(c)
    // The holder's text is not for the log.
    c.set('request', { ...request.value, value: undefined })
    return writeResponse(c, await leases.write(address, request.value, name))
  }
  app.put('/:slot{.+}', c => write(c, parsePut))
  app.delete('/:slot{.+}', c => write(c, parseRelease))
  return app
}

export const historyRoutes = ({ leases }: Services): Hono<WitnessHttpEnv> => {
  const app = new Hono<WitnessHttpEnv>()
  app.get('/:slot{.+}', async c => {
    const address = slotAddress(c)
    if (!address) return errorResponse(c, { code: 'invalid-slot' })
    if (!canRead(c.get('caller').grant, address.slot)) return forbiddenResponse(c)
    const outcome = await leases.history(address)
    switch (outcome.kind) {
      case 'history': {
        c.set('outcome', 'read')
        const body: LeaseHistory = { slot: address.slot, transitions: [...outcome.transitions] }
        return c.json(body)
      }
      case 'absent':
        return neverWrittenResponse(c)
      default:
        return unavailableResponse(c, outcome)
    }
  })
  return app
}
