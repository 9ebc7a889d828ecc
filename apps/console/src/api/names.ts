import type { ListedName, NamesResponse } from '@pool/contract'
import type { NameSearch } from '../domain/name-query.ts'
import { client } from './client.ts'

/** The most requests for one page: a search that finds little reads on for a while, and then shows what it has. */
const MAX_REQUESTS = 20

/** A page of names. A response can be short although others follow, so that several may be needed. */
export const searchNames = async (
  search: NameSearch,
  { cursor, limit, signal }: { cursor: string | undefined; limit: number; signal: AbortSignal },
): Promise<NamesResponse> => {
  const names: ListedName[] = []
  let next = cursor
  for (let requests = 0; requests < MAX_REQUESTS; requests += 1) {
    const page = await client.searchNames({ ...search, limit: limit - names.length, cursor: next }, { signal })
    names.push(...page.names)
    next = page.nextCursor
    if (next === undefined || names.length >= limit) break
  }
  return { names, ...(next === undefined ? {} : { nextCursor: next }) }
}
