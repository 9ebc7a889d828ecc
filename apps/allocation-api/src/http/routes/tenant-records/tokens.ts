import { deleteTokenRequest, type MintTokenResponse, mintTokenRequest, operations, RECORDS_PATH } from '@pool/contract'
import type { Context } from 'hono'
import { hashToken } from '../../../lib/token.ts'
import type { HolderProof, MintedToken, TenantRecords } from '../../../records/domain/types.ts'
import {
  type ErrorOutcome,
  getCaller,
  getDeploymentToken,
  type Handlers,
  type HttpEnv,
  parseWrite,
  sendError,
  validated,
} from '../../request.ts'

const NEEDS_PROOF =
  'Send the reservationToken of the name, or the X-Deployment-Token of the deployment that holds it; or have an operator do it.'

const hashOptional = (token: string | undefined): Buffer | undefined =>
  token === undefined ? undefined : hashToken(token)

const readProof = (c: Context<HttpEnv>, reservationToken: string | undefined): HolderProof => ({
  tokenHash: hashOptional(reservationToken),
  deploymentTokenHash: hashOptional(getDeploymentToken(c)),
})

const explain = (error: ErrorOutcome, { tokenHash, deploymentTokenHash }: HolderProof): ErrorOutcome =>
  error.kind === 'token-mismatch' && !tokenHash && !deploymentTokenHash ? { ...error, detail: NEEDS_PROOF } : error

/** What clients of acme-dns read from a file. They send the FQDN back in `subdomain`. */
const toAccounts = (
  { fqdn, id, token }: MintedToken,
  recordsUrl: string | null,
): MintTokenResponse['acmeDnsAccounts'] => ({
  [fqdn]: {
    fulldomain: `_acme-challenge.${fqdn}`,
    subdomain: `_acme-challenge.${fqdn}`,
    username: id,
    password: token,
    ...(recordsUrl !== null && { server_url: `${recordsUrl}${RECORDS_PATH}/acme-dns` }),
  },
})

/** The tokens that the holder of a name, or an operator, mints for the tools of the tenant. */
export const tokenHandlers = (
  records: TenantRecords,
  recordsUrl: string | null,
): Pick<Handlers, 'mintToken' | 'listTokens' | 'deleteToken'> => ({
  mintToken: async c => {
    const request = await parseWrite(c, mintTokenRequest)
    if (!request.ok) return sendError(c, request.error)
    const { caller, key } = request.value
    const { reservationToken, ...fields } = request.value.command
    const command = { ...fields, ...readProof(c, reservationToken) }
    const outcome = await records.mintToken(command, caller, key)
    if (outcome.kind !== 'minted') return sendError(c, explain(outcome, command))
    c.env.outcome = outcome.kind
    const body: MintTokenResponse = { ...outcome.minted, acmeDnsAccounts: toAccounts(outcome.minted, recordsUrl) }
    return c.json(body, 201)
  },

  listTokens: validated(operations.listTokens, async (c, { path, query }) => {
    const outcome = await records.listTokens({ poolDomain: path.domain, subdomain: query.sub })
    if (outcome.kind !== 'listed') return sendError(c, outcome)
    c.env.outcome = outcome.kind
    return c.json({ tokens: [...outcome.tokens] }, 200)
  }),

  deleteToken: async c => {
    const request = await parseWrite(c, deleteTokenRequest)
    if (!request.ok) return sendError(c, request.error)
    const { reservationToken, records: withRecords, ...fields } = request.value.command
    const command = { ...fields, withRecords, ...readProof(c, reservationToken) }
    const outcome = await records.deleteToken(command, getCaller(c))
    if (outcome.kind !== 'deleted') return sendError(c, explain({ ...outcome, kind: outcome.kind }, command))
    c.env.outcome = outcome.kind
    return c.body(null, 204)
  },
})
