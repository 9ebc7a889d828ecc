import { encodeCursor, historyQuery, listQuery } from '@pool/contract'
import { type Context, Hono } from 'hono'
import type { AllocationService } from '../../allocation/service.ts'
import type { Pages } from '../../lib/paginate.ts'
import { sendError } from '../errors.ts'
import type { HttpEnv, OnStreamError } from '../types.ts'
import { getPoolDomain, validate } from '../validate.ts'

/** The text of `{"poolDomain":…,"<field>":[…],"nextCursor":…}`, one page at a time. */
async function* toJsonText<Item>(
  poolDomain: string,
  field: string,
  first: IteratorResult<readonly Item[], string | undefined>,
  rest: Pages<Item>,
  toWire: (item: Item) => unknown,
): AsyncGenerator<string> {
  yield `{"poolDomain":${JSON.stringify(poolDomain)},"${field}":[`
  let page = first
  let separator = ''
  while (!page.done) {
    yield separator + page.value.map(item => JSON.stringify(toWire(item))).join(',')
    separator = ','
    page = await rest.next()
  }
  yield page.value === undefined ? ']}' : `],"nextCursor":${JSON.stringify(encodeCursor(page.value))}}`
}

/** Closes the connection if a page cannot be read, so that no client takes the truncated response for a whole one. */
async function* encodeOrAbort(c: Context<HttpEnv>, text: AsyncGenerator<string>, onStreamError: OnStreamError) {
  const encoder = new TextEncoder()
  try {
    for await (const part of text) yield encoder.encode(part)
  } catch (error) {
    onStreamError(error, c.get('requestId'))
    c.env.outgoing?.destroy()
  }
}

/**
 * Streams the pages at the client's pace. The first page is read before the status is sent, so an unavailable database is
 * a 503.
 */
const streamPages = async <Item>(
  c: Context<HttpEnv>,
  field: string,
  pages: Pages<Item>,
  toWire: (item: Item) => unknown,
  onStreamError: OnStreamError,
): Promise<Response> => {
  const text = toJsonText(getPoolDomain(c), field, await pages.next(), pages, toWire)
  c.set('outcome', 'listed')
  return c.body(ReadableStream.from(encodeOrAbort(c, text, onStreamError)), 200, { 'Content-Type': 'application/json' })
}

export const allocationListRoutes = (
  allocations: Pick<AllocationService, 'list' | 'history'>,
  onStreamError: OnStreamError,
) =>
  new Hono<HttpEnv>()
    .get('/:domain/list', validate('query', listQuery), async c => {
      const outcome = allocations.list(getPoolDomain(c), c.req.valid('query'))
      if (outcome.kind !== 'listed') return sendError(c, outcome)
      return streamPages(c, 'allocations', outcome.pages, allocation => allocation, onStreamError)
    })
    .get('/:domain/history', validate('query', historyQuery), async c => {
      const outcome = allocations.history(getPoolDomain(c), c.req.valid('query'))
      if (outcome.kind !== 'listed') return sendError(c, outcome)
      return streamPages(c, 'entries', outcome.pages, ({ entry }) => entry, onStreamError)
    })
