import { createReader } from 'allocation-api/src/allocation/reader.ts'
import type { Sql } from 'allocation-api/src/database/connect.ts'
import { labelOf, labelSql } from '../labels.ts'
import type { Answer } from '../load/answer.ts'
import { localCrew, oneOf, openHttpCrew, type Subject } from '../load/subject.ts'
import { targetTable } from '../report/target.ts'
import type { Section } from '../section.ts'
import { compareStandard, METHOD, POOL, SUBJECTS, targetsOf } from './standard.ts'

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

const answered = oneOf(200)

/** The status is 200 whatever the answer is, so the answer is looked at too. */
const says =
  (taken: boolean) =>
  (answer: Answer): string | null =>
    answered(answer) ??
    (answer.body.startsWith(`{"available":${!taken},`) && (!taken || answer.body.includes('"reserved-state"'))
      ? null
      : `not as it should be: ${answer.body.slice(0, 120)}`)

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
    const reader = createReader(direct.sql, { timeoutMs: stage.config.database.timeoutMs })
    let asked = 0
    // Alternates between taken and free.
    const next = () => {
      const turn = asked++ % NAMES
      const taken = turn % 2 === 0
      return { taken, subdomain: labelOf(taken ? turn / 2 : TAKEN + (turn - 1) / 2) }
    }

    const http = (faultOf: (taken: boolean) => (answer: Answer) => string | null) => () => {
      const { taken, subdomain } = next()
      return {
        request: { method: 'GET' as const, path: `/api/v1/pool/${POOL}/check?sub=${subdomain}` },
        faultOf: faultOf(taken),
      }
    }
    const checkDirectly = async () => {
      const { taken, subdomain } = next()
      const state = await reader.heldState({ poolDomain: POOL, subdomain })
      return (state === 'reserved') === taken ? null : `not as it should be: ${state}`
    }
    const subjects: Subject[] = [
      { name: SUBJECTS.api, open: callers => openHttpCrew(api.port, callers, http(says)) },
      { name: SUBJECTS.sql, open: async callers => localCrew(callers, checkDirectly) },
      {
        name: SUBJECTS.empty,
        open: callers =>
          openHttpCrew(
            empty.port,
            callers,
            http(() => answered),
          ),
      },
    ]
    const { tables, figures, faults, comparisons } = await compareStandard('check', context, subjects)
    const targets = targetsOf(comparisons, AT_LEAST)
    return {
      notes: [METHOD],
      tables: [...tables, targetTable('target', targets)],
      figures: { ...figures, targets },
      faults,
    }
  },
}
