import type { DnsProvider } from 'allocation-api/src/dns/provider.ts'
import type { Database } from '../environment/cluster.ts'
import type { ProviderName, ProviderSite } from '../environment/provider-site.ts'
import type { Service } from '../environment/service.ts'
import type { Answer } from '../load/answer.ts'
import type { BurstSubject, Ended } from '../load/bursts.ts'
import { type Connection, openConnection } from '../load/connection.ts'
import { oneOf } from '../load/subject.ts'
import { sumByLabel } from '../metrics-text.ts'
import type { SectionContext } from '../section.ts'
import { createOneWrite } from './one-write.ts'
import { createNames, type Name, reserveAgain } from './provider-names.ts'

/** As many as are committed at once at the most. */
export const NAMES = 64
/** One record a name: then all of them are in a zone that can hold a hundred, which is what a Dynadot domain can. */
const RECORD_NAMES = ['@']

interface Side {
  readonly database: Database
  readonly site: ProviderSite
  readonly names: readonly Name[]
}

/** With every name reserved. */
export const openSide = async (
  { stage }: SectionContext,
  provider: ProviderName,
  cleanup: AsyncDisposableStack,
): Promise<Side> => {
  const database = cleanup.use(await stage.database())
  const site = cleanup.use(await stage.providerSite(provider))
  return { database, site, names: await createNames(database.sql, site.zone, NAMES) }
}

const portCalls = async ({ port }: Service): Promise<number> => {
  const text = await fetch(`http://127.0.0.1:${port}/metrics`).then(response => response.text())
  const counts = Object.values(sumByLabel(text, 'pdm_dns_operation_duration_seconds_count', 'operation'))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** 202: committed, and its records are not out yet. */
export const endedOf = (answer: Answer): Ended => {
  if (answer.status === 202) return 'late'
  const fault = oneOf(200)(answer)
  return fault === null ? 'done' : { fault }
}

export const apiSubject = async (
  { stage }: SectionContext,
  { database, site, names }: Side,
  cleanup: AsyncDisposableStack,
): Promise<BurstSubject> => {
  const env = { ...site.env, DNSPROVIDER_RECORD_NAMES: RECORD_NAMES.join(',') }
  const api = cleanup.use(await stage.api(database, env))
  let connections: readonly Connection[] = []
  const close = () => {
    for (const connection of connections) connection.close()
  }
  cleanup.defer(close)
  return {
    async prepare(count) {
      await reserveAgain(database.sql, site.zone)
      // New ones: the API closes a connection that is idle for longer than others may take.
      close()
      connections = await Promise.all(Array.from({ length: count }, () => openConnection(api.port)))
    },
    calls: async () => site.requests?.() ?? portCalls(api),
    async operate(caller) {
      const [name, connection] = [names[caller], connections[caller]]
      if (!name || !connection) throw new Error(`there is no caller ${caller}`)
      const { subdomain, reservationToken } = name
      const fqdn = `${subdomain}.${site.zone}`
      const body = JSON.stringify({ subdomain, reservationToken, sovereignFQDN: fqdn, loadBalancerIP: name.address() })
      const path = `/api/v1/pool/${site.zone}/commit`
      const ended = endedOf(await connection.send({ method: 'POST', path, body }))
      if (typeof ended === 'string') name.moved()
      return ended
    },
  }
}

export const oneWriteSubject = async (
  { stage }: SectionContext,
  { database, site, names }: Side,
  cleanup: AsyncDisposableStack,
): Promise<BurstSubject> => {
  const provider = site.connect()
  cleanup.defer(() => provider.close())
  let called = 0
  const counted: DnsProvider = {
    ...provider,
    read(...question) {
      called += 1
      return provider.read(...question)
    },
    apply(...order) {
      called += 1
      return provider.apply(...order)
    },
  }
  const { sql } = database
  const { zone } = site
  const oneWrite = createOneWrite({ sql, zone, provider: counted, config: stage.config, recordNames: RECORD_NAMES })
  await oneWrite.publish(names)
  return {
    prepare: () => reserveAgain(sql, zone),
    calls: async () => site.requests?.() ?? called,
    async operate(caller, isOver) {
      const name = names[caller]
      if (!name) throw new Error(`there is no caller ${caller}`)
      return oneWrite.commit(name, isOver)
    },
  }
}
