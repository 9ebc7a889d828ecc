import {
  type ActiveAllocation,
  type AddressOptions,
  type CommitPendingResponse,
  createCommitRequest,
  createUpdateRequest,
  type DnsState,
  dryRunQuery,
  type NameAction,
  operations,
  type ReleasePendingResponse,
  type ReserveResponse,
  releaseRequest,
  renewRequest,
  reserveRequest,
  splitTarget,
} from '@pool/contract'
import type { Context } from 'hono'
import type { CoolingOff, ReleaseCommand, UpdateCommand } from '../../allocation/domain/types.ts'
import type { AllocationService } from '../../allocation/service.ts'
import { hashToken } from '../../lib/token.ts'
import {
  type ErrorOutcome,
  getCaller,
  getDeploymentToken,
  getPoolDomain,
  type Handlers,
  type HttpEnv,
  type Parsed,
  parse,
  parseWrite,
  readJson,
  sendError,
  validated,
} from '../request.ts'
import { type NamePlanning, sendNamePlan } from './name-plan.ts'

type Allocations = Pick<
  AllocationService,
  'check' | 'get' | 'reserve' | 'commit' | 'update' | 'renew' | 'release' | 'liftCoolOff' | 'findObstacle'
>

export interface AllocationRouteOptions extends AddressOptions {
  /** An operator changes a name without its token. */
  readonly isOperator: boolean
}

/** Only the hash of a token goes beyond this layer. */
const hashCommandToken = <Command extends { reservationToken: string }>({ reservationToken, ...rest }: Command) => ({
  ...rest,
  tokenHash: hashToken(reservationToken),
})

const toCoolOffDetail = ({ availableAt }: CoolingOff): string =>
  `The name was released; it becomes available at ${availableAt}. Its former client can reserve it now with its reservationToken.`

const NEEDS_TOKEN =
  'PDM_RELEASE_TOKEN requires the reservationToken of the name, or the X-Deployment-Token of the deployment that holds it; send it, or have an operator release the name.'

/** The additional fields of a 202: the database has the change, and the DNS provider does not have it yet. */
const toPendingWarning = (dns: DnsState, change: string) => ({
  warning: 'dns-pending' as const,
  detail: `${change} ${dns.detail ?? 'The DNS provider has not confirmed yet.'} The service writes the records as soon as it can.`,
})

/**
 * The body of a release. Some clients cannot send a body, and some send one without a name, so `?sub=` may replace the
 * name or the whole body.
 */
const readReleaseBody = async (c: Context<HttpEnv>) => {
  const json = await readJson(c)
  const sub = c.req.query('sub')
  if (!json.ok && sub === undefined) return json
  const body = { ...(json.ok ? (json.value as object | null | undefined) : {}) }
  const hasName = 'subdomain' in body && body.subdomain !== null && body.subdomain !== ''
  return { ok: true as const, value: hasName || sub === undefined ? body : { ...body, subdomain: sub } }
}

/** 200 if the records are published, or 202 with a warning that starts with `change`. */
const sendActive = (c: Context<HttpEnv>, allocation: ActiveAllocation, change: string) => {
  if (allocation.dns.status === 'published') return c.json(allocation, 200)
  const body: CommitPendingResponse = { ...allocation, ...toPendingWarning(allocation.dns, change) }
  return c.json(body, 202)
}

const parseDryRun = (c: Context<HttpEnv>): Parsed<boolean> => {
  const dryRun = parse(dryRunQuery.shape.dryRun, c.req.query('dryRun'))
  return dryRun.ok ? { ok: true, value: dryRun.value === 'true' } : dryRun
}

/** Only a release that needs a token can be rejected without one. */
const explainMissingToken = (error: ErrorOutcome, { tokenHash }: Pick<ReleaseCommand, 'tokenHash'>): ErrorOutcome =>
  error.kind === 'token-mismatch' && !tokenHash ? { ...error, detail: NEEDS_TOKEN } : error

const hashOptionalToken = (token: string | undefined): Buffer | undefined =>
  token === undefined ? undefined : hashToken(token)

export const allocationHandlers = (
  allocations: Allocations,
  planning: NamePlanning,
  options: AllocationRouteOptions,
): Pick<
  Handlers,
  | 'checkName'
  | 'getAllocation'
  | 'reserveName'
  | 'commitName'
  | 'updateName'
  | 'renewReservation'
  | 'releaseName'
  | 'liftCoolOff'
> => {
  const commitRequest = createCommitRequest(options)
  const updateRequest = createUpdateRequest(options, options.isOperator)
  /** Responds to a dry run as to the request itself, but with a plan. */
  const plan = async (
    c: Context<HttpEnv>,
    action: NameAction,
    command: UpdateCommand & ReleaseCommand,
  ): Promise<Response> => {
    const obstacle = await allocations.findObstacle(action, command, getCaller(c))
    if (obstacle) return sendError(c, explainMissingToken(obstacle, command))
    return sendNamePlan(c, planning, command, { action, change: command.change })
  }
  return {
    checkName: async c => {
      const result = await allocations.check(getPoolDomain(c), c.req.query('sub'))
      c.env.outcome = result.reason ?? 'available'
      return c.json(result, 200)
    },

    getAllocation: validated(operations.getAllocation, async (c, { path: { domain: poolDomain, subdomain } }) => {
      const outcome = await allocations.get({ poolDomain, subdomain })
      if (outcome.kind !== 'found') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      return c.json(outcome.allocation, 200)
    }),

    reserveName: async c => {
      const request = await parseWrite(c, reserveRequest)
      if (!request.ok) return sendError(c, request.error)
      const { command, caller, key } = request.value
      const { reservationToken, ...fields } = command
      const outcome = await allocations.reserve(
        { ...fields, formerTokenHash: hashOptionalToken(reservationToken) },
        caller,
        key,
      )
      if (outcome.kind === 'cooling-off') return sendError(c, { ...outcome, detail: toCoolOffDetail(outcome) })
      if (outcome.kind !== 'granted') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      const body: ReserveResponse = { ...outcome.allocation, reservationToken: outcome.reservationToken }
      return c.json(body, 201)
    },

    commitName: async c => {
      const request = await parseWrite(c, commitRequest)
      if (!request.ok) return sendError(c, request.error)
      const { command, caller, key } = request.value
      const { target, rest } = splitTarget(command)
      const outcome = await allocations.commit({ ...hashCommandToken(rest), target }, caller, key)
      if (outcome.kind !== 'committed') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      return sendActive(c, outcome.allocation, 'The name is committed; its records are not published yet.')
    },

    updateName: async c => {
      const dryRun = parseDryRun(c)
      if (!dryRun.ok) return sendError(c, dryRun.error)
      const request = await parseWrite(c, updateRequest)
      if (!request.ok) return sendError(c, request.error)
      const { caller, key } = request.value
      const { target, rest } = splitTarget(request.value.command)
      const { reservationToken, ...fields } = rest
      const change = Object.keys(target).length > 0 ? target : undefined
      const command = { ...fields, change, tokenHash: hashOptionalToken(reservationToken) }
      if (dryRun.value) return plan(c, 'update', command)
      const outcome = await allocations.update(command, caller, key)
      if (outcome.kind !== 'updated') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      return sendActive(c, outcome.allocation, 'The name is updated; its records are not published yet.')
    },

    renewReservation: async c => {
      const request = await parseWrite(c, renewRequest)
      if (!request.ok) return sendError(c, request.error)
      const outcome = await allocations.renew(hashCommandToken(request.value.command))
      if (outcome.kind !== 'renewed') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      return c.json(outcome.allocation, 200)
    },

    releaseName: async c => {
      const dryRun = parseDryRun(c)
      if (!dryRun.ok) return sendError(c, dryRun.error)
      const body = await readReleaseBody(c)
      if (!body.ok) return sendError(c, body.error)
      const request = await parseWrite(c, releaseRequest, body.value)
      if (!request.ok) return sendError(c, request.error)
      const { caller, key } = request.value
      const { reservationToken, ...fields } = request.value.command
      const command = {
        ...fields,
        tokenHash: hashOptionalToken(reservationToken),
        deploymentTokenHash: hashOptionalToken(getDeploymentToken(c)),
      }
      if (dryRun.value) return plan(c, 'release', command)
      const outcome = await allocations.release(command, caller, key)
      if (outcome.kind !== 'released') return sendError(c, explainMissingToken(outcome, command))
      c.env.outcome = outcome.kind
      const { freed, withdrawal } = outcome
      if (withdrawal.status === 'published') return c.json({ freed }, 200)
      const pending: ReleasePendingResponse = {
        freed,
        ...toPendingWarning(withdrawal, 'The name is released; some of its records are not deleted yet.'),
      }
      return c.json(pending, 202)
    },

    liftCoolOff: validated(operations.liftCoolOff, async (c, { path: { domain: poolDomain, subdomain }, query }) => {
      const name = { poolDomain, subdomain }
      if (query.dryRun === 'true') return plan(c, 'lift-cool-off', name)
      const outcome = await allocations.liftCoolOff(name, getCaller(c))
      if (outcome.kind !== 'lifted') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      return c.body(null, 204)
    }),
  }
}
