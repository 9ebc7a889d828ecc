import { putRecordRequest, type TenantRecord, toCanonicalFqdn } from '@pool/contract'
import type { Context } from 'hono'
import type { ReadOutcome, TenantRecordSet, TenantRecords } from '../../../records/domain/types.ts'
import { unquoteText } from '../../../records/domain/values.ts'
import { type Handlers, type HttpEnv, parseBody, sendError } from '../../request.ts'
import { changeRecords, forTenant, rejectToken } from './change.ts'

const toWire = ({ name, type, ttl, values, owner }: TenantRecordSet, dns: ReadOutcome['dns']): TenantRecord => ({
  name,
  type,
  ttl,
  values: type === 'TXT' ? values.map(unquoteText) : [...values],
  owner,
  ...dns,
})

const getSet = (c: Context<HttpEnv>) => ({
  name: c.req.param('name') ?? '',
  type: (c.req.param('type') ?? '').toUpperCase(),
})

/** The records of tenants in our own form. */
export const tenantRecordHandlers = (
  records: TenantRecords,
): Pick<Handlers, 'listRecords' | 'putRecord' | 'deleteRecord'> => ({
  listRecords: forTenant(async (c, tokenDigest) => {
    const outcome = await records.read(tokenDigest)
    if (outcome.kind === 'unauthorized') return rejectToken(c)
    const { fqdn, sets, dns } = outcome
    c.env.outcome = 'listed'
    const published = sets.filter(({ isPublished }) => isPublished)
    return c.json({ fqdn, records: published.map(set => toWire(set, dns)) }, 200)
  }),

  putRecord: forTenant(async (c, tokenDigest) => {
    const body = await parseBody(c, putRecordRequest)
    if (!body.ok) return sendError(c, body.error)
    const { name, type } = getSet(c)
    const changes = [{ kind: 'put', name, type, ...body.value }] as const
    return changeRecords(c, { records, tokenDigest, changes, waits: true, mode: 'all' }, async () => {
      const outcome = await records.read(tokenDigest)
      // Released or deleted again since then.
      if (outcome.kind === 'unauthorized') return rejectToken(c)
      const isSame = (set: TenantRecordSet) =>
        set.name === toCanonicalFqdn(name) && set.type === type && set.owner === outcome.owner
      const set = outcome.sets.find(isSame)
      return set ? c.json(toWire(set, outcome.dns), 200) : sendError(c, { kind: 'record-conflict' })
    })
  }),

  deleteRecord: forTenant((c, tokenDigest) => {
    const changes = [{ kind: 'delete', ...getSet(c) }] as const
    return changeRecords(c, { records, tokenDigest, changes, waits: false, mode: 'all' }, () => c.body(null, 204))
  }),
})
