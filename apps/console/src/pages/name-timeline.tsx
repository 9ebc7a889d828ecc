import type { HistoryEntry } from '@pool/contract'
import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { describeActor, describeEvent, toEventTone } from '../domain/history.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import { EmptyState, Loaded } from '../ui/feedback.tsx'
import { Link } from '../ui/router.tsx'
import { Panel } from '../ui/shell.tsx'
import { Timeline, type TimelineEntry } from '../ui/timeline.tsx'

const PAGE_SIZE = 50
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

const Origin = ({ entry }: { readonly entry: HistoryEntry }) => {
  const { actor, createdBy, event, requestId } = entry
  const isDeployment = actor === 'deployment' && requestId !== undefined && UUID.test(requestId)
  return (
    <>
      <div class="detail">
        {describeActor(entry)}
        {isDeployment && (
          <>
            {' '}
            <Link to={{ page: 'deployment', id: requestId }}>{requestId.slice(0, 8)}</Link>
          </>
        )}
        {event === 'reserved' && createdBy !== '' && ` for ${toVisibleText(createdBy)}`}
      </div>
      {requestId && !isDeployment && (
        <div class="detail">
          Request ID <code>{toVisibleText(requestId)}</code>
        </div>
      )}
    </>
  )
}

const toTimelineEntry = (entry: HistoryEntry): TimelineEntry => ({
  title: describeEvent(entry),
  at: entry.at,
  tone: toEventTone(entry.event),
  details: (
    <>
      {entry.detail && <div>{toVisibleText(entry.detail)}</div>}
      {entry.deletedRecords?.map(({ name, type, data }) => (
        <div key={`${name} ${type}`} class="detail">
          deleted{' '}
          <code>
            {toVisibleText(name)} {type} {toVisibleText(data.join(', '))}
          </code>
        </div>
      ))}
      <Origin entry={entry} />
    </>
  ),
})

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
            <EmptyState title="The name has no history.">
              An entry appears when a client reserves the name. Old entries are deleted after the retention time.
            </EmptyState>
          ) : (
            <>
              <Timeline entries={entries.map(toTimelineEntry)} />
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
