import {
  type CheckResult,
  type CommitPendingResponse,
  commitRequest,
  type DnsState,
  type ReleasePendingResponse,
  type ReserveResponse,
  releaseRequest,
  renewRequest,
  reserveRequest,
  subdomain,
} from '@pool/contract'
import { Hono } from 'hono'
import type {
  Caller,
  CommitCommand,
  CommitOutcome,
  GetOutcome,
  PoolName,
  ReleaseCommand,
  ReleaseOutcome,
  RenewCommand,
  RenewOutcome,
  ReserveCommand,
  ReserveOutcome,
} from '../../allocation/domain/types.ts'
import { problem } from '../errors.ts'
import type { HttpEnv } from '../types.ts'
import { parse, poolOf, readJson, readWrite } from '../validate.ts'

export interface PoolVerbs {
  readonly check: (poolDomain: string, sub: string | undefined) => Promise<CheckResult>
  readonly get: (name: PoolName) => Promise<GetOutcome>
  readonly reserve: (command: ReserveCommand, caller: Caller, key: string | undefined) => Promise<ReserveOutcome>
  readonly commit: (command: CommitCommand, caller: Caller, key: string | undefined) => Promise<CommitOutcome>
  readonly renew: (command: RenewCommand, caller: Caller) => Promise<RenewOutcome>
  readonly release: (command: ReleaseCommand, caller: Caller, key: string | undefined) => Promise<ReleaseOutcome>
}

/** What a 202 adds: the work is done here, and what is left needs nobody's help. */
const pendingNotice = (dns: DnsState, what: string) => ({
  warning: 'dns-pending' as const,
  detail: `${what} ${dns.detail ?? 'The DNS provider has not confirmed yet.'} It is retried until it succeeds.`,
})

export const poolRoutes = (verbs: PoolVerbs) =>
  new Hono<HttpEnv>()
    .get('/:domain/check', async c => {
      const result = await verbs.check(poolOf(c), c.req.query('sub'))
      c.set('outcome', result.reason ?? 'available')
      return c.json(result, 200)
    })

    .get('/:domain/allocations/:subdomain', async c => {
      const label = parse(subdomain, c.req.param('subdomain'))
      if (!label.ok) return problem(c, label.refused)
      const outcome = await verbs.get({ poolDomain: poolOf(c), subdomain: label.value })
      if (outcome.kind !== 'found') return problem(c, outcome)
      c.set('outcome', outcome.kind)
      return c.json(outcome.allocation, 200)
    })

    .post('/:domain/reserve', async c => {
      const request = await readWrite(c, reserveRequest)
      if (!request.ok) return problem(c, request.refused)
      const { command, caller, key } = request.value
      const outcome = await verbs.reserve(command, caller, key)
      if (outcome.kind !== 'granted') return problem(c, outcome)
      c.set('outcome', outcome.kind)
      const body: ReserveResponse = { ...outcome.allocation, reservationToken: outcome.reservationToken }
      return c.json(body, 201)
    })

    .post('/:domain/commit', async c => {
      const request = await readWrite(c, commitRequest)
      if (!request.ok) return problem(c, request.refused)
      const { command, caller, key } = request.value
      const outcome = await verbs.commit(command, caller, key)
      if (outcome.kind !== 'committed') return problem(c, outcome)
      c.set('outcome', outcome.kind)
      const { allocation } = outcome
      if (allocation.dns.status === 'published') return c.json(allocation, 200)
      const body: CommitPendingResponse = {
        ...allocation,
        ...pendingNotice(allocation.dns, 'The name is committed; its records are not published yet.'),
      }
      return c.json(body, 202)
    })

    .post('/:domain/renew', async c => {
      const request = await readWrite(c, renewRequest)
      if (!request.ok) return problem(c, request.refused)
      const outcome = await verbs.renew(request.value.command, request.value.caller)
      if (outcome.kind !== 'renewed') return problem(c, outcome)
      c.set('outcome', outcome.kind)
      return c.json(outcome.allocation, 200)
    })

    .delete('/:domain/release', async c => {
      const json = await readJson(c)
      const sub = c.req.query('sub')
      // Callers exist that cannot send a body, and some whose body names nothing: `?sub=` speaks for them.
      if (!json.ok && sub === undefined) return problem(c, json.refused)
      const body = { ...(json.ok ? (json.value as object | null | undefined) : {}) }
      const named = 'subdomain' in body && body.subdomain !== null && body.subdomain !== ''
      const request = await readWrite(
        c,
        releaseRequest,
        named || sub === undefined ? body : { ...body, subdomain: sub },
      )
      if (!request.ok) return problem(c, request.refused)
      const { command, caller, key } = request.value
      const outcome = await verbs.release(command, caller, key)
      if (outcome.kind !== 'released') return problem(c, outcome)
      c.set('outcome', outcome.kind)
      const { freed, withdrawal } = outcome
      if (withdrawal.status === 'published') return c.json({ freed }, 200)
      const pending: ReleasePendingResponse = {
        freed,
        ...pendingNotice(withdrawal, 'The name is free; its records are not all withdrawn yet.'),
      }
      return c.json(pending, 202)
    })
