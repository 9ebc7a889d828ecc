import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { formatDuration, formatLocal, formatRelative, formatUtc } from '../domain/time.ts'

const listeners = new Set<(now: number) => void>()
let timer: ReturnType<typeof setInterval> | undefined

/** The current time, every second. One timer serves the whole page. */
const useNow = (): number => {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    listeners.add(setNow)
    timer ??= setInterval(() => {
      for (const listener of listeners) listener(Date.now())
    }, 1_000)
    return () => {
      listeners.delete(setNow)
      if (listeners.size === 0) {
        clearInterval(timer)
        timer = undefined
      }
    }
  }, [])
  return now
}

interface TimeProps {
  /** RFC 3339; empty, null or undefined: there is none. */
  readonly at: string | null | undefined
  /** Instead of a time that does not exist. */
  readonly absent?: string
}

/** A time in the viewer's zone; UTC is the hint. */
export const Time = ({ at, absent = '–' }: TimeProps) =>
  at ? (
    <time dateTime={at} title={formatUtc(Date.parse(at))}>
      {formatLocal(Date.parse(at))}
    </time>
  ) : (
    <span class="muted">{absent}</span>
  )

/** The distance of a time from now; the times in the viewer's zone and in UTC are the hint. */
export const RelativeTime = ({ at, absent = '–' }: TimeProps) => {
  const now = useNow()
  if (!at) return <span class="muted">{absent}</span>
  const time = Date.parse(at)
  return (
    <time dateTime={at} title={`${formatLocal(time)}, ${formatUtc(time)}`}>
      {formatRelative(time, now)}
    </time>
  )
}

/** Counts down to `endsAt`, in milliseconds by the clock of this machine. */
export const Countdown = ({ endsAt, expiredText }: { readonly endsAt: number; readonly expiredText: string }) => {
  const rest = endsAt - useNow()
  return <span class="countdown">{rest <= 0 ? expiredText : formatDuration(rest + 999)}</span>
}

/** Calls `run` repeatedly while the page is visible. */
export const useInterval = (run: () => void, ms: number): void => {
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') run()
    }, ms)
    return () => clearInterval(timer)
  }, [run, ms])
}

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
