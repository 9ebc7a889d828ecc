import type { Sql } from '@pool/runtime/database/client'
import type { HeldLocks } from '../checks/errors-attributable.ts'
import type { SoakEnvironment } from '../environment/environment.ts'
import { ZONE } from '../environment/zone.ts'
import type { ActiveFault } from './active-fault.ts'

/** Of a fault that makes the database read-only. In the others, the sessions notice the new setting. */
const TERMINATION_PROBABILITY = 0.5
/** Of a failover that redirects the clients to the standby before its promotion. */
const EARLY_REDIRECTION_PROBABILITY = 0.5
const TABLES = ['pool_allocations', 'dns_names', 'idempotency_keys', 'allocation_history', 'write_probes']

/** As a managed database does when its disk is almost full. */
export const makeReadOnly = async (sql: Sql, strength: number): Promise<ActiveFault> => {
  await sql`alter system set default_transaction_read_only = on`
  await sql`select pg_reload_conf()`
  if (strength < TERMINATION_PROBABILITY)
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'allocation-api%'`
  return {
    async end() {
      await sql`alter system reset default_transaction_read_only`
      await sql`select pg_reload_conf()`
    },
  }
}

/** Stops the primary like a crash. Promotes the standby at the end, and redirects the clients before that or then. */
export const promoteStandby = async (
  { postgres, replicas, observerLink }: SoakEnvironment,
  strength: number,
): Promise<ActiveFault> => {
  const standbyPort = Number(new URL(postgres.standbyUrl()).port)
  const redirect = () => {
    for (const { link } of replicas) link.redirect(standbyPort)
  }
  const [isStopped, isOver] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const promoted = postgres.failOver(async () => {
    isStopped.resolve()
    if (strength < EARLY_REDIRECTION_PROBABILITY) redirect()
    await isOver.promise
  })
  await Promise.race([isStopped.promise, promoted])
  return {
    async end() {
      isOver.resolve()
      await promoted
      redirect()
      observerLink.redirect(standbyPort)
    },
  }
}

/** Opens a transaction with locks. Ends it with the fault. */
const startTransaction = async (sql: Sql) => {
  const session = await sql.reserve()
  const end = async () => {
    await session`rollback`
    session.release()
  }
  await session`begin`
  return { session, end }
}

/** Locks the contended names, but those that the service has locked at the moment. */
export const lockRows = async (sql: Sql, table: HeldLocks['table']): Promise<ActiveFault> => {
  const { session, end } = await startTransaction(sql)
  const isContended = sql`subdomain ~ '^n[0-9]+$'`
  const rows = await (table === 'pool_allocations'
    ? session<{ subdomain: string }[]>`
        select subdomain from pool_allocations where pool_domain = ${ZONE} and ${isContended} for update skip locked`
    : session<{ subdomain: string }[]>`
        select subdomain from dns_names where zone = ${ZONE} and ${isContended} for update skip locked`)
  return { end, locks: { table, names: new Set(rows.map(({ subdomain }) => subdomain)) } }
}

/** Takes the locks of VACUUM, which no statement of the service conflicts with. */
export const lockTables = async (sql: Sql): Promise<ActiveFault> => {
  const { session, end } = await startTransaction(sql)
  for (const table of TABLES) await session`lock table ${sql(table)} in share update exclusive mode`
  return { end }
}
