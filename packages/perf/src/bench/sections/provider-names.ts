import type { Sql } from '@pool/database/client'
import { labelSql } from '../labels.ts'
import type { Reservation } from './reservations.ts'

/** A name whose reservation is committed again and again, each time with another address than its records have. */
export interface Name extends Reservation {
  readonly address: () => string
  /** Its records have the address now, or will. */
  readonly moved: () => void
}

const ADDRESSES = ['203.0.113.10', '203.0.113.11'] as const

/** `count` reservations, written straight into the table. */
export const createNames = async (sql: Sql, zone: string, count: number): Promise<Name[]> => {
  const rows = await sql.unsafe<Reservation[]>(
    `insert into pool_allocations
       (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
     select $1, ${labelSql('n')}, 'reserved', now(), now() + interval '1 day', gen_random_uuid(), 'bench'
     from generate_series(0::bigint, $2::bigint - 1) n
     returning subdomain, reservation_token as "reservationToken"`,
    [zone, count],
  )
  return rows.map(({ subdomain, reservationToken }) => {
    let turn = 0
    const address = () => ADDRESSES[turn] ?? ADDRESSES[0]
    const moved = () => {
      turn = 1 - turn
    }
    return { subdomain, reservationToken, address, moved }
  })
}

/** What was committed is a reservation again. Its records stay, so that the zone is as large after as before. */
export const reserveAgain = async (sql: Sql, zone: string): Promise<void> => {
  await sql`
    update pool_allocations set state = 'reserved', expires_at = now() + interval '1 day',
      sovereign_fqdn = null, load_balancer_ip = null, committed_at = null
    where pool_domain = ${zone} and state = 'active'`
}
