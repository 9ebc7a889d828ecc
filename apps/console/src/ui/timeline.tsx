import type { ComponentChildren } from 'preact'
import { Time } from './time.tsx'

export interface TimelineEntry {
  readonly title: string
  /** RFC 3339. */
  readonly at: string
  readonly tone?: 'ok' | 'bad' | ''
  readonly details: ComponentChildren
}

/** What has happened, newest first. */
export const Timeline = ({ entries }: { readonly entries: readonly TimelineEntry[] }) => (
  <ol class="timeline">
    {entries.map(({ title, at, tone, details }, index) => (
      // A new entry comes first, and the others keep their keys.
      <li key={`${at} ${title} ${entries.length - index}`} class={tone}>
        <div class="head">
          <strong>{title}</strong>
          <span class="muted">
            <Time at={at} />
          </span>
        </div>
        {details}
      </li>
    ))}
  </ol>
)
