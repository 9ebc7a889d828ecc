import { randomUUID } from 'node:crypto'
import { createAllocationRepository } from 'allocation-api/src/allocation/repository.ts'
import { createRecords } from 'allocation-api/src/dns/domain/rrset.ts'
import { localCrew, oneOf, openHttpCrew, type Subject } from '../load/subject.ts'
import { sumByLabel } from '../metrics-text.ts'
import { figure, spread } from '../report/numbers.ts'
import type { Table } from '../report/table.ts'
import type { Section } from '../section.ts'
import { createStock, type Reservation } from './reservations.ts'
import { compareStandard, METHOD, POOL, SUBJECTS } from './standard.ts'

/** Commits a second that the stock is made for; a run that uses it up ends early, and its rate is over that time. */
const STOCK_PER_SECOND = 6_000
const ADDRESS = '203.0.113.10'

const COVERS = [
  'Commit waits until the records of its name are at the DNS provider (here the local one, whose zone is a table in the',
  'same database). SQL alone is the commit statement alone: the row made active, its desired records and its history;',
  'the passes that bring the zone there, one at a time for all who wait, are what the API adds.',
].join('\n')

export const commitSection: Section = {
  name: 'commit',
  title: 'POST commit, every one of a reservation of its own',
  on: 'postgres',
  async run(context) {
    const { stage, options } = context
    // The API brings every name of its database to the provider: what is committed directly must not be in it.
    await using viaApi = await stage.database()
    await using direct = await stage.database()
    await using api = await stage.api(viaApi)
    await using empty = await stage.emptyRoute()
    const { dns, database } = stage.config
    const store = createAllocationRepository(direct.sql, { timeoutMs: database.timeoutMs })
    const stocks = { api: createStock(viaApi.sql), direct: createStock(direct.sql) }
    const needed = Math.ceil(options.seconds * STOCK_PER_SECOND)

    const commandOf = ({ subdomain, reservationToken }: Reservation) => ({
      subdomain,
      reservationToken,
      sovereignFQDN: `${subdomain}.${POOL}`,
      loadBalancerIP: ADDRESS,
    })
    const http = (take: () => Reservation | undefined, faultOf: ReturnType<typeof oneOf>) => () => {
      const reservation = take()
      if (!reservation) return undefined
      const body = JSON.stringify(commandOf(reservation))
      return { request: { method: 'POST' as const, path: `/api/v1/pool/${POOL}/commit`, body }, faultOf }
    }
    let late = 0
    const committed: ReturnType<typeof oneOf> = answer => {
      if (answer.status === 202) late += 1
      return oneOf(200, 202)(answer)
    }
    const commitDirectly = () => {
      const reservation = stocks.direct.take()
      return reservation && commitOne(reservation)
    }
    const commitOne = async (reservation: Reservation): Promise<string | null> => {
      const template = { names: dns.recordNames, ttl: dns.recordTtlSeconds }
      const desired = createRecords(`${reservation.subdomain}.${POOL}`, ADDRESS, template)
      const caller = { actor: 'in-cluster' as const, address: '127.0.0.1', requestId: randomUUID() }
      const decision = await store.commit({ poolDomain: POOL, ...commandOf(reservation) }, desired, caller)
      return typeof decision === 'object' && decision.kind === 'committed' ? null : 'not committed'
    }
    const providerCalls = async () => {
      const text = await fetch(`http://127.0.0.1:${api.port}/metrics`).then(response => response.text())
      return sumByLabel(text, 'pdm_dns_operation_duration_seconds_count', 'operation')
    }
    const anyone: Reservation = { subdomain: 'bench', reservationToken: randomUUID() }

    const subjects: Subject[] = [
      {
        name: SUBJECTS.api,
        prepare: () => stocks.api.fill(needed),
        open: callers => openHttpCrew(api.port, callers, http(stocks.api.take, committed)),
        counters: providerCalls,
      },
      {
        name: SUBJECTS.sql,
        prepare: () => stocks.direct.fill(needed),
        open: async callers => localCrew(callers, commitDirectly),
      },
      {
        name: SUBJECTS.empty,
        open: callers =>
          openHttpCrew(
            empty.port,
            callers,
            http(() => anyone, oneOf(200)),
          ),
      },
    ]
    const { tables, figures, faults, loads } = await compareStandard('commit', context, subjects)
    const calls: Table = {
      columns: [
        { title: 'connections', align: 'right' },
        { title: 'provider reads a commit', align: 'right' },
        { title: 'provider writes a commit', align: 'right' },
      ],
      rows: loads.map(({ connections, subjects: [ofApi] }) => [
        String(connections),
        ...['read', 'apply'].map(operation => {
          const calls = ofApi?.perOperation[operation]
          return calls ? spread(calls) : figure(0)
        }),
      ]),
    }
    const lateNote = `Answered 202, because the provider took longer than the API waits: ${late}.`
    return {
      notes: [METHOD, COVERS, lateNote],
      tables: [...tables, calls],
      figures: { ...figures, answered202: late },
      faults,
    }
  },
}
