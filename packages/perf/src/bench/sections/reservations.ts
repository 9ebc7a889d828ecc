import type { Sql } from '@pool/database/client'
import { labelSql } from '../labels.ts'
import { POOL } from './standard.ts'

export interface Reservation {
  readonly subdomain: string
  readonly reservationToken: string
}

/** Reservations that wait to be committed, each once. */
export interface Stock {
  /** Makes new ones until at least so many are there. */
  readonly fill: (count: number) => Promise<void>
  readonly take: () => Reservation | undefined
}

/**
 * They are written straight into the table, as `reserve` would have left them but for their history. Stocks of one
 * database need a prefix each: a letter, and what may follow it in a name.
 */
export const createStock = (sql: Sql, prefix = ''): Stock => {
  const waiting: Reservation[] = []
  let made = 0
  return {
    async fill(count) {
      const missing = count - waiting.length
      if (missing <= 0) return
      const rows = await sql.unsafe<{ subdomain: string; reservationToken: string }[]>(
        `insert into pool_allocations
           (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
         select $1, $4 || ${labelSql('n')}, 'reserved', now(), now() + interval '1 day', gen_random_uuid(), 'bench'
         from generate_series($2::bigint, $2::bigint + $3::bigint - 1) n
         returning subdomain, reservation_token as "reservationToken"`,
        [POOL, made, missing, prefix],
      )
      made += missing
      waiting.push(...rows)
    },
    take: () => waiting.pop(),
  }
}
