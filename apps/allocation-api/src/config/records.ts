import type { EnvReader } from '@pool/runtime/service/env'
import type { RecordsOptions } from '../records/domain/types.ts'
import { RECORD_TYPES } from '../records/domain/values.ts'

const DEFAULT_TYPES = ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'SRV']

const readTypes = (env: EnvReader): readonly string[] => {
  const types = (env.list('PDM_RECORDS_TYPES') ?? DEFAULT_TYPES).map(type => type.toUpperCase())
  for (const type of types) {
    if (!RECORD_TYPES.some(known => known === type)) {
      env.addIssue('PDM_RECORDS_TYPES', `"${type}" is not one of ${RECORD_TYPES.join(', ')}`)
    }
  }
  return types
}

export const readRecords = (env: EnvReader): RecordsOptions => ({
  maxScope: env.oneOf('PDM_RECORDS', ['off', 'acme', 'records'], 'acme'),
  types: readTypes(env),
  limit: env.integer('PDM_RECORDS_LIMIT', 100, { min: 1, max: 1_000 }),
  minTtlSeconds: env.durationMs('PDM_RECORDS_MIN_TTL', '60s', { min: '1s', max: '24h' }) / 1_000,
})

/** Where tools of tenants reach this service, without a slash at the end. Null: not configured. */
export const readRecordsUrl = (env: EnvReader): string | null =>
  env.text('PDM_RECORDS_URL') === undefined ? null : env.url('PDM_RECORDS_URL')
