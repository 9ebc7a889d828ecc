import { randomUUID } from 'node:crypto'
import type { Sql } from '@pool/runtime/database/client'
import { createServerClock } from '@pool/runtime/database/server-clock'
import { createWriter } from '@pool/runtime/database/writer'
import { createAllocationReader } from 'allocation-api/src/allocation/reader.ts'
import { createAllocationRepository } from 'allocation-api/src/allocation/repository.ts'
import { createRecords } from 'allocation-api/src/dns/domain/rrset.ts'
import { createToken, hashToken } from 'allocation-api/src/lib/token.ts'
import type { ResponseError } from '../load/target.ts'
import { POOL, type Reservation } from './seed.ts'

/** The API's defaults. */
const OPTIONS = { reservation: { ttlMs: 600_000, maxAgeMs: 86_400_000 }, timeoutMs: 5_000 }
const RECORDS = { names: ['@', '*', 'console', 'api', 'gitea', 'harbor'], ttl: 300 }
export const ADDRESS = '203.0.113.10'

const createCaller = () => ({ actor: 'in-cluster' as const, address: '127.0.0.1', requestId: randomUUID() })

/** The API's own statements, one request each: without HTTP, and without the batching of concurrent requests. */
export const createDirectSql = (sql: Sql) => {
  const clock = createServerClock(sql, OPTIONS)
  const repository = createAllocationRepository(createWriter({ fast: sql, slow: sql, clock, ...OPTIONS }), OPTIONS)
  const reader = createAllocationReader(sql, OPTIONS)
  return {
    async reserve(subdomain: string): Promise<ResponseError> {
      const command = { poolDomain: POOL, subdomain, createdBy: 'bench' }
      const decision = await repository.reserve({ command, tokenHash: createToken().tokenHash, caller: createCaller() })
      return typeof decision === 'object' && decision.kind === 'granted' ? null : 'not reserved'
    },
    async check(subdomain: string, isReserved: boolean): Promise<ResponseError> {
      const [state] = await reader.findStates([{ poolDomain: POOL, subdomain }])
      return (state === 'reserved') === isReserved ? null : `unexpected state: ${state}`
    },
    async commit({ subdomain, reservationToken }: Reservation): Promise<ResponseError> {
      const sovereignFQDN = `${subdomain}.${POOL}`
      const tokenHash = hashToken(reservationToken)
      const command = { poolDomain: POOL, subdomain, tokenHash, sovereignFQDN, loadBalancerIP: ADDRESS }
      const decision = await repository.commit(command, createRecords(sovereignFQDN, ADDRESS, RECORDS), createCaller())
      return typeof decision === 'object' && decision.kind === 'committed' ? null : 'not committed'
    },
    async release(subdomain: string): Promise<ResponseError> {
      const decision = await repository.release({ poolDomain: POOL, subdomain }, createCaller())
      return typeof decision === 'object' && decision.kind === 'released' ? null : 'not released'
    },
  }
}
