import type { Sql } from '@pool/database/client'
import { createAllocationRepository } from 'allocation-api/src/allocation/repository.ts'
import { labelOf, labelSql } from '../labels.ts'
import { localCrew, openHttpCrew, type Subject } from '../load/subject.ts'
import type { Section } from '../section.ts'
import { checkTask, toEmptyRoute } from './requests.ts'
import { compareWithTargets, POOL, SUBJECTS } from './standard.ts'

/** Names asked for in turn: the first half of them are taken. */
const NAMES = 20_000
const TAKEN = NAMES / 2

/** Of the bare statements. */
const AT_LEAST = 0.8

const seed = async (sql: Sql): Promise<void> => {
  await sql.unsafe(
    `insert into pool_allocations
       (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
     select $1, ${labelSql('n')}, 'reserved', now(), now() + interval '1 day', gen_random_uuid(), 'bench'
     from generate_series(0::bigint, $2::bigint - 1) n`,
    [POOL, TAKEN],
  )
  await sql`analyze pool_allocations`
}

export const checkSection: Section = {
  name: 'check',
  title: 'GET check, of names of which half are taken',
  on: 'postgres',
  async run(context) {
    const { stage } = context
    await using viaApi = await stage.database()
    await using direct = await stage.database()
    for (const { sql } of [viaApi, direct]) await seed(sql)
    await using api = await stage.api(viaApi)
    await using empty = await stage.emptyRoute()
    const repository = createAllocationRepository(direct.sql, { timeoutMs: stage.config.database.timeoutMs })
    let asked = 0
    // Alternates between taken and free.
    const next = () => {
      const turn = asked++ % NAMES
      const taken = turn % 2 === 0
      return { taken, subdomain: labelOf(taken ? turn / 2 : TAKEN + (turn - 1) / 2) }
    }

    const request = () => {
      const { taken, subdomain } = next()
      return checkTask(subdomain, taken ? 'reserved' : undefined)
    }
    const checkDirectly = async () => {
      const { taken, subdomain } = next()
      const [state] = await repository.findStates([{ poolDomain: POOL, subdomain }])
      return (state === 'reserved') === taken ? null : `not as it should be: ${state}`
    }
    const subjects: Subject[] = [
      { name: SUBJECTS.api, open: callers => openHttpCrew(api.port, callers, request) },
      { name: SUBJECTS.sql, open: async callers => localCrew(callers, checkDirectly) },
      { name: SUBJECTS.empty, open: callers => openHttpCrew(empty.port, callers, () => toEmptyRoute(request())) },
    ]
    // Awaited here: what it measures lives to the end of this function.
    return await compareWithTargets('check', context, subjects, AT_LEAST)
  },
}
