import { type Allocation, encodeCursor, historyQuery, listQuery } from '@pool/contract'
import { type Context, Hono } from 'hono'
import type { EntryWithId, HistoryQuery, ListOutcome, ListQuery } from '../../allocation/domain/types.ts'
import type { Pages } from '../../lib/paginate.ts'
import { problem } from '../errors.ts'
import type { HttpEnv, OnStreamError } from '../types.ts'
import { parse, poolOf } from '../validate.ts'

export interface ListingVerbs {
  readonly list: (poolDomain: string, query: ListQuery) => ListOutcome<Allocation>
  readonly history: (poolDomain: string, query: HistoryQuery) => ListOutcome<EntryWithId>
}

/** The text of `{"poolDomain":…,"<field>":[…],"nextCursor":…}`, a page at a time. */
async function* jsonText<Item>(
  poolDomain: string,
  field: string,
  first: IteratorResult<readonly Item[], string | undefined>,
  rest: Pages<Item>,
  show: (item: Item) => unknown,
): AsyncGenerator<string> {
  yield `{"poolDomain":${JSON.stringify(poolDomain)},"${field}":[`
  let page = first
  let separator = ''
  while (!page.done) {
    yield separator + page.value.map(item => JSON.stringify(show(item))).join(',')
    separator = ','
    page = await rest.next()
  }
  yield page.value === undefined ? ']}' : `],"nextCursor":${JSON.stringify(encodeCursor(page.value))}}`
}

/** Ends the connection when the pages cannot be read on: the answer has begun, and must not look like a whole one. */
async function* orBreakOff(c: Context<HttpEnv>, text: AsyncGenerator<string>, onStreamError: OnStreamError) {
  const encoder = new TextEncoder()
  try {
    for await (const part of text) yield encoder.encode(part)
  } catch (error) {
    onStreamError(error, c.get('requestId'))
    c.env.outgoing?.destroy()
  }
}

/**
 * Answers with the pages as they are read; the reader's pace is ours. The first is read before the status is sent, so
 * a database that is away is a 503. One that goes away later breaks the connection off, which no client can take for
 * the whole.
 */
const stream = async <Item>(
  c: Context<HttpEnv>,
  field: string,
  pages: Pages<Item>,
  show: (item: Item) => unknown,
  onStreamError: OnStreamError,
): Promise<Response> => {
  const text = orBreakOff(c, jsonText(poolOf(c), field, await pages.next(), pages, show), onStreamError)
  c.set('outcome', 'listed')
  return c.body(ReadableStream.from(text), 200, {
    'Content-Type': 'application/json',
  })
}

export const listingRoutes = (verbs: ListingVerbs, onStreamError: OnStreamError) =>
  new Hono<HttpEnv>()
    .get('/:domain/list', async c => {
      const query = parse(listQuery, c.req.query())
      if (!query.ok) return problem(c, query.refused)
      const outcome = verbs.list(poolOf(c), query.value)
      if (outcome.kind !== 'listed') return problem(c, outcome)
      return stream(c, 'allocations', outcome.pages, allocation => allocation, onStreamError)
    })
    .get('/:domain/history', async c => {
      const query = parse(historyQuery, c.req.query())
      if (!query.ok) return problem(c, query.refused)
      const outcome = verbs.history(poolOf(c), query.value)
      if (outcome.kind !== 'listed') return problem(c, outcome)
      return stream(c, 'entries', outcome.pages, numbered => numbered.entry, onStreamError)
    })
