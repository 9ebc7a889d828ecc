import { createHash } from 'node:crypto'
import { acmeDnsUpdateRequest, httpreqRequest } from '@pool/contract'
import type { Context } from 'hono'
import type { SetChange, TenantRecords } from '../../../records/domain/types.ts'
import { type Handlers, type HttpEnv, parseBody, sendError } from '../../request.ts'
import { changeRecords, forTenant } from './change.ts'

/** With `label._acme-challenge` too, of dns-account-01. */
const HAS_CHALLENGE_LABEL = /^(?:[^.]+\.)?_acme-challenge\./i

const toChallengeName = (domain: string): string =>
  HAS_CHALLENGE_LABEL.test(domain) ? domain : `_acme-challenge.${domain}`

/** The httpreq provider of lego, and acme-dns: two forms of the same request. */
export const acmeHandlers = (
  records: TenantRecords,
): Pick<
  Handlers,
  'presentChallenge' | 'cleanUpChallenge' | 'updateAcmeDns' | 'registerAcmeDns' | 'getAcmeDnsHealth'
> => {
  const httpreq = (kind: 'add-challenge' | 'remove-challenge') =>
    forTenant(async (c, tokenDigest) => {
      const body = await parseBody(c, httpreqRequest)
      if (!body.ok) return sendError(c, body.error)
      const change: SetChange =
        'fqdn' in body.value
          ? { kind, name: body.value.fqdn, value: body.value.value }
          : {
              kind,
              name: `_acme-challenge.${body.value.domain}`,
              value: createHash('sha256').update(body.value.keyAuth).digest('base64url'),
            }
      const request = { records, tokenDigest, changes: [change], mode: 'all' } as const
      return changeRecords(c, { ...request, waits: kind === 'add-challenge' }, () => c.json({}, 200))
    })
  return {
    presentChallenge: httpreq('add-challenge'),
    cleanUpChallenge: httpreq('remove-challenge'),

    updateAcmeDns: forTenant(async (c, tokenDigest) => {
      const body = await parseBody(c, acmeDnsUpdateRequest)
      if (!body.ok) return sendError(c, body.error)
      const { subdomain, txt } = body.value
      const changes = [{ kind: 'add-challenge', name: toChallengeName(subdomain), value: txt }] as const
      return changeRecords(c, { records, tokenDigest, changes, waits: true, mode: 'all' }, () => c.json({ txt }, 200))
    }),
    registerAcmeDns: (c: Context<HttpEnv>) => sendError(c, { kind: 'no-registration' }),
    getAcmeDnsHealth: (c: Context<HttpEnv>) => c.json({ status: 'ok' }, 200),
  }
}
