import { randomUUID } from 'node:crypto'
import type { Sql } from '@pool/runtime/database/client'
import { createServerClock } from '@pool/runtime/database/time'
import { createWriter } from '@pool/runtime/database/writer'
import { createAllocationReader } from 'allocation-api/src/allocation/reader.ts'
import { type AllocationRepository, createAllocationRepository } from 'allocation-api/src/allocation/repository.ts'
import { createRecords } from 'allocation-api/src/dns/domain/target.ts'
import { createToken, hashToken } from 'allocation-api/src/lib/token.ts'
import { POOL } from './names.ts'

/** The API's defaults. */
const OPTIONS = { reservation: { ttlMs: 600_000, maxAgeMs: 86_400_000 }, timeoutMs: 5_000 }
const RECORDS = { names: ['@', '*', 'console', 'api', 'gitea', 'harbor'], ttl: 300 }
export const ADDRESS = '203.0.113.10'

const createCaller = () => ({ actor: 'in-cluster' as const, address: '127.0.0.1', requestId: randomUUID() })

type Decision = string | { readonly kind: string }

/** Throws unless a decision is the expected one. */
const expectDecision = (decision: Decision, expected: string): void => {
  const kind = typeof decision === 'object' ? decision.kind : decision
  if (kind !== expected) throw new Error(`${kind}, not ${expected}`)
}

/** The API's own statements, one request each: without HTTP, and without the batching of concurrent requests. */
export const createDirectSql = (sql: Sql) => {
  const clock = createServerClock(sql, OPTIONS)
  const createRepository = () =>
    createAllocationRepository(createWriter({ fast: sql, slow: sql, clock, ...OPTIONS }), OPTIONS)
  const idle: AllocationRepository[] = []
  /** The concurrent requests of one writer share statements, so each has a writer that no other uses meanwhile. */
  const withRepository = async <Result>(
    work: (repository: AllocationRepository) => Promise<Result>,
  ): Promise<Result> => {
    const repository = idle.pop() ?? createRepository()
    try {
      return await work(repository)
    } finally {
      idle.push(repository)
    }
  }
  const reader = createAllocationReader(sql, OPTIONS)
  return {
    /** Resolves with the reservation token. */
    async reserve(subdomain: string): Promise<string> {
      const { token, tokenHash } = createToken()
      const request = { poolDomain: POOL, subdomain, createdBy: 'bench', tokenHash, caller: createCaller() }
      expectDecision(await withRepository(repository => repository.reserve(request)), 'granted')
      return token
    },
    async check(subdomain: string, isReserved: boolean): Promise<void> {
      const [state] = await reader.findStates([{ poolDomain: POOL, subdomain }])
      if ((state === 'reserved') !== isReserved) throw new Error(`unexpected state: ${state}`)
    },
    async commit(subdomain: string, reservationToken: string): Promise<void> {
      const sovereignFQDN = `${subdomain}.${POOL}`
      const tokenHash = hashToken(reservationToken)
      const command = { poolDomain: POOL, subdomain, tokenHash, sovereignFQDN, target: { loadBalancerIP: ADDRESS } }
      const records = createRecords(sovereignFQDN, { loadBalancerIP: ADDRESS }, RECORDS)
      const commit = { ...command, records, caller: createCaller() }
      expectDecision(await withRepository(repository => repository.commit(commit)), 'committed')
    },
    async release(subdomain: string): Promise<void> {
      const release = { poolDomain: POOL, subdomain, caller: createCaller() }
      expectDecision(await withRepository(repository => repository.release(release)), 'released')
    },
  }
}
