import { encodeCursor, operations } from '@pool/contract'
import type { Context } from 'hono'
import type { AllocationService } from '../../allocation/service.ts'
import type { Pages } from '../../lib/paginate.ts'
import { getPoolDomain, type Handlers, type HttpEnv, sendError, validated } from '../request.ts'
import { type ListStreams, sendList } from '../streams.ts'

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

/**
 * Streams the pages at the client's pace. The first page is read before the status is sent, so an unavailable database is
 * a 503.
 */
const sendPages = <Item>(
  c: Context<HttpEnv>,
  lists: ListStreams,
  field: string,
  pages: Pages<Item>,
  toWire: (item: Item) => unknown,
): Promise<Response> =>
  sendList(c, lists, async () => toJsonText(getPoolDomain(c), field, await pages.next(), pages, toWire))

export const allocationListHandlers = (
  allocations: Pick<AllocationService, 'list' | 'history'>,
  lists: ListStreams,
): Pick<Handlers, 'listAllocations' | 'readHistory'> => ({
  listAllocations: validated(operations.listAllocations, (c, { path, query }) => {
    const outcome = allocations.list(path.domain, query, lists.inTurn)
    if (outcome.kind !== 'listed') return sendError(c, outcome)
    return sendPages(c, lists, 'allocations', outcome.pages, allocation => allocation)
  }),
  readHistory: validated(operations.readHistory, (c, { path, query }) => {
    const outcome = allocations.history(path.domain, query, lists.inTurn)
    if (outcome.kind !== 'listed') return sendError(c, outcome)
    return sendPages(c, lists, 'entries', outcome.pages, ({ entry }) => entry)
  }),
})
