import type { HistoryEntry } from '@pool/contract'
import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { describeEvent, toEventTone } from '../domain/history.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import { EmptyState, Loaded } from '../ui/feedback.tsx'
import { Link } from '../ui/router.tsx'
import { Panel } from '../ui/shell.tsx'
import { Time } from '../ui/time.tsx'

const PAGE_SIZE = 50
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

const Origin = ({ entry: { actor, address, requestId } }: { readonly entry: HistoryEntry }) => (
  <>
    {actor}
    {address ? ` from ${address}` : ''}
    {requestId &&
      (actor === 'deployment' && UUID.test(requestId) ? (
        <>
          {' '}
          <Link to={{ page: 'deployment', id: requestId }}>{requestId.slice(0, 8)}</Link>
        </>
      ) : (
        <>
          , request <code>{toVisibleText(requestId)}</code>
        </>
      ))}
  </>
)

const TimelineItem = ({ entry }: { readonly entry: HistoryEntry }) => (
  <li class={toEventTone(entry.event)}>
    <div class="head">
      <strong>{describeEvent(entry)}</strong>
      <span class="muted">
        <Time at={entry.at} />
      </span>
    </div>
    {entry.detail && <div>{toVisibleText(entry.detail)}</div>}
    {entry.deletedRecords?.map(({ name, type, data }) => (
      <div key={`${name} ${type}`} class="detail">
        deleted{' '}
        <code>
          {toVisibleText(name)} {type} {toVisibleText(data.join(', '))}
        </code>
      </div>
    ))}
    <div class="detail">
      <Origin entry={entry} />
      {entry.createdBy ? `, created by ${toVisibleText(entry.createdBy)}` : ''}
    </div>
  </li>
)

/** The whole history of a name, newest first. */
export const NameTimeline = ({ pool, subdomain }: { readonly pool: string; readonly subdomain: string }) => {
  const [limit, setLimit] = useState(PAGE_SIZE)
  const history = useResource(signal => client.readHistory({ domain: pool, sub: subdomain, limit }, { signal }), {
    key: String(limit),
    topics: ['names'],
    keepsPrevious: true,
  })
  return (
    <Panel title="History">
      <Loaded resource={history}>
        {({ entries, nextCursor }) =>
          entries.length === 0 ? (
            <EmptyState title="The name has no history.">Entries are deleted after the retention time.</EmptyState>
          ) : (
            <>
              <ol class="timeline">
                {entries.map((entry, index) => (
                  <TimelineItem key={`${entry.at} ${entry.event} ${entries.length - index}`} entry={entry} />
                ))}
              </ol>
              {nextCursor !== undefined && (
                <div class="actions">
                  <button type="button" onClick={() => setLimit(limit + PAGE_SIZE)}>
                    Show earlier entries
                  </button>
                </div>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  )
}
