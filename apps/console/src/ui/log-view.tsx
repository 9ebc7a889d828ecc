import {
  elementScroll,
  measureElement,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from '@tanstack/virtual-core'
import { useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks'
import { type LogLine, markMatches } from '../domain/log-buffer.ts'
import { formatClock, formatUtc } from '../domain/time.ts'

const LINE_HEIGHT_PX = 20
/** Lines outside the visible part, so that scrolling shows no gaps. */
const OVERSCAN = 20
/** Closer than this to the end counts as the end. */
const END_PX = 40

const MarkedText = ({ text, search }: { readonly text: string; readonly search: string }) => (
  <>
    {markMatches(text, search).map(({ text: part, isMatch }, index) =>
      isMatch ? <mark key={index}>{part}</mark> : <span key={index}>{part}</span>,
    )}
  </>
)

interface LogViewProps {
  readonly lines: readonly LogLine[]
  readonly search: string
  /** Whether to stay at the end when lines arrive. */
  readonly isFollowing: boolean
  readonly onFollowingChange: (isFollowing: boolean) => void
}

/** Renders the visible lines only, whatever the length of the log. */
export const LogView = ({ lines, search, isFollowing, onFollowingChange }: LogViewProps) => {
  const scroller = useRef<HTMLElement>(null)
  const [, render] = useReducer((count: number) => count + 1, 0)
  const options = {
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_HEIGHT_PX,
    getItemKey: (index: number) => lines[index]?.number ?? index,
    overscan: OVERSCAN,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    measureElement,
    onChange: () => render(0),
  }
  const [virtualizer] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(options))
  virtualizer.setOptions(options)
  useLayoutEffect(() => virtualizer._didMount(), [virtualizer])
  useLayoutEffect(() => virtualizer._willUpdate())
  // A new line moves the end. Not an effect after the paint: one that is still due would move back a reader who has just
  // left the end.
  useLayoutEffect(() => {
    if (isFollowing && lines.length > 0) virtualizer.scrollToIndex(lines.length - 1, { align: 'end' })
  }, [isFollowing, lines, virtualizer])
  return (
    <section
      ref={scroller}
      class="log"
      aria-label="Log"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
      tabIndex={0}
      onWheel={({ deltaY }) => deltaY < 0 && onFollowingChange(false)}
      onKeyDown={event => {
        const { key } = event
        if (['ArrowUp', 'PageUp', 'Home'].includes(key)) onFollowingChange(false)
        if (key !== 'Home' && key !== 'End') return
        // The browser would stop short: the heights of lines are estimates until they are rendered.
        event.preventDefault()
        if (key === 'End') onFollowingChange(true)
        virtualizer.scrollToIndex(key === 'End' ? lines.length - 1 : 0, { align: key === 'End' ? 'end' : 'start' })
      }}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        if (!isFollowing && scrollHeight - scrollTop - clientHeight < END_PX && scrollHeight > clientHeight + END_PX) {
          onFollowingChange(true)
        }
      }}
    >
      <div class="spacer" style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {virtualizer.getVirtualItems().map(({ key, index, start }) => {
          const line = lines[index]
          return (
            line && (
              <div
                key={key}
                data-index={index}
                ref={element => virtualizer.measureElement(element)}
                class={`line ${line.level}`}
                style={{ transform: `translateY(${start}px)` }}
              >
                <span class="time" title={formatUtc(line.at)}>
                  {formatClock(line.at)}
                </span>
                <span class="level">{line.level}</span>
                <span class="phase">
                  <MarkedText text={line.phase} search={search} />
                </span>
                <span class="message">
                  <MarkedText text={line.message} search={search} />
                </span>
              </div>
            )
          )
        })}
      </div>
    </section>
  )
}
