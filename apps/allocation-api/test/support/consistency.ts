import { Resolver } from 'node:dns/promises'
import type { Sql } from '@pool/runtime/database/client'
import { until } from '@pool/test-kit/poll.ts'
import { expect } from 'vitest'

/** The addresses that the server on this port gives for the name, over UDP; `NXDOMAIN`, or another error's code. */
export const createDnsClient = (
  port: number,
  { tries = 4, timeoutMs = 2_000 }: { readonly tries?: number; readonly timeoutMs?: number } = {},
) => {
  const resolver = new Resolver({ timeout: timeoutMs, tries })
  resolver.setServers([`127.0.0.1:${port}`])
  return async (name: string): Promise<string[] | string> => {
    try {
      return (await resolver.resolve4(name)).sort()
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
      return code === 'ENOTFOUND' ? 'NXDOMAIN' : code
    }
  }
}

export const recordNames = ['@', '*', 'console', 'api', 'gitea', 'harbor']

interface ActiveName {
  readonly zone: string
  readonly subdomain: string
  readonly address: string
}

export const activeNames = (sql: Sql): Promise<ActiveName[]> => sql<ActiveName[]>`
  select pool_domain as zone, subdomain, host(load_balancer_ip) as address from pool_allocations
  where state = 'active' order by 1, 2`

/** Waits until no name has pending records. Triggers nothing. */
export const untilApplied = (sql: Sql, withinMs?: number): Promise<true> =>
  until(
    'the provider has the desired version of every name',
    async () => {
      const [row] = await sql<{ due: number }[]>`
        select count(*) as due from dns_names where applied_version < version`
      return row?.due === 0 || undefined
    },
    withinMs,
  )

/** One address of a name. */
interface PublishedAddress {
  readonly name: string
  readonly content: string
}

const reverse = (name: string): string => name.split('.').reverse().join('.')

const readLocalZones = async (sql: Sql): Promise<PublishedAddress[]> => {
  const rows = await sql<{ reversed: string; content: string }[]>`
    select reversed_name as reversed, array_to_string(record_values, ',') as content from local_dns_record_sets
    where type <> 'TXT'`
  return rows.map(({ reversed, content }) => ({ name: reverse(reversed), content }))
}

/** Fails unless the active names, their desired records and what is published agree. By default that is what `local` has. */
export const expectConsistentTables = async (
  sql: Sql,
  published: PublishedAddress[] | Promise<PublishedAddress[]> = readLocalZones(sql),
): Promise<void> => {
  const [active, desired, records] = await Promise.all([
    activeNames(sql),
    sql`select zone, subdomain, jsonb_array_length(desired) as records from dns_names
        where desired <> '[]' order by 1, 2`,
    published,
  ])
  expect(desired).toEqual(active.map(({ zone, subdomain }) => ({ zone, subdomain, records: recordNames.length })))
  const wanted = active.flatMap(({ zone, subdomain, address }) =>
    recordNames.map(relative => `${relative === '@' ? '' : `${relative}.`}${subdomain}.${zone} ${address}`),
  )
  expect(records.map(({ name, content }) => `${name} ${content}`).sort()).toEqual(wanted.sort())
}

/** The receive buffer of one UDP socket holds this number of responses. */
const MAX_CONCURRENT_QUERIES = 50

/** Queries DNS for every name of the record set, for names that only the wildcard matches, and for names that must not exist. */
export const expectDnsToMatch = async (
  port: number,
  active: readonly ActiveName[],
  absent: readonly string[],
): Promise<void> => {
  const resolve = createDnsClient(port)
  const prefixes = [...recordNames.filter(relative => relative !== '*'), 'anything', 'any.other']
  const expected: [string, string[] | string][] = []
  for (const { zone, subdomain, address } of active) {
    for (const relative of prefixes) {
      expected.push([`${relative === '@' ? '' : `${relative}.`}${subdomain}.${zone}`, [address]])
    }
  }
  for (const fqdn of absent) {
    for (const name of [fqdn, `api.${fqdn}`, `x.${fqdn}`]) expected.push([name, 'NXDOMAIN'])
  }
  for (let from = 0; from < expected.length; from += MAX_CONCURRENT_QUERIES) {
    const some = expected.slice(from, from + MAX_CONCURRENT_QUERIES)
    expect(await Promise.all(some.map(async ([name]) => [name, await resolve(name)]))).toEqual(some)
  }
}
