import { type ComponentChildren, createContext } from 'preact'
import { useCallback, useContext, useMemo, useState } from 'preact/hooks'
import { describeError } from '../api/describe-error.ts'
import type { Resource } from '../api/resource.ts'
import { toVisibleText } from '../domain/text.ts'

export type Tone = 'info' | 'ok' | 'warn' | 'bad'

interface NoticeProps {
  readonly tone?: Tone
  readonly title: ComponentChildren
  readonly children?: ComponentChildren
  /** A screen reader announces it immediately. */
  readonly isAlert?: boolean
}

export const Notice = ({ tone = 'info', title, children, isAlert = false }: NoticeProps) => (
  <div class={`notice ${tone}`} {...(isAlert ? { role: 'alert' } : {})}>
    <strong>{title}</strong>
    {children}
  </div>
)

interface LongTextProps {
  /** What the text is, for a screen reader. */
  readonly label: string
  readonly text: string
}

/** About three lines of a column of a table. */
const MAX_CELL_LENGTH = 60

/** The reason of a state in a table: its beginning, and all of it on request. */
export const CellReason = ({ text }: { readonly text: string }) =>
  text.length <= MAX_CELL_LENGTH ? (
    <div class="muted">{toVisibleText(text)}</div>
  ) : (
    <details class="reason muted">
      <summary>
        <span>{toVisibleText(text)}</span>
      </summary>
    </details>
  )

const MAX_UNBOUNDED_LENGTH = 400

/** A text of another program, which can be long: then it scrolls. */
export const LongText = ({ label, text }: LongTextProps) =>
  text.length <= MAX_UNBOUNDED_LENGTH ? (
    <div>{toVisibleText(text)}</div>
  ) : (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <section class="long-text" tabIndex={0} aria-label={label}>
      {toVisibleText(text)}
    </section>
  )

/** What went wrong, what to do, and the id of the request for the log. */
export const ErrorNotice = ({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) => {
  const { title, advice, requestId } = describeError(error)
  return (
    <Notice tone="bad" title={title} isAlert>
      {advice && <div>{advice}</div>}
      {requestId && (
        <div class="muted">
          Request ID <code>{requestId}</code>
        </div>
      )}
      {onRetry && (
        <div class="actions">
          <button type="button" onClick={onRetry}>
            Try again
          </button>
        </div>
      )}
    </Notice>
  )
}

export const EmptyState = ({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) => (
  <div class="empty-state">
    <strong>{title}</strong>
    {children}
  </div>
)

interface LoadedProps<Data> {
  readonly resource: Resource<Data>
  readonly children: (data: Data) => ComponentChildren
}

/** Shows data as soon as there is any. A failed read shows its error above the data that was read before. */
export const Loaded = <Data,>({ resource: { data, error, reload }, children }: LoadedProps<Data>) => (
  <>
    {error !== undefined && <ErrorNotice error={error} onRetry={reload} />}
    {data !== undefined && children(data)}
    {data === undefined && error === undefined && <p class="empty-state">Loading …</p>}
  </>
)

interface Toast {
  readonly id: number
  readonly text: string
}

const ToastContext = createContext<(text: string) => void>(() => undefined)

/** Returns a function that shows what was done, for some seconds. */
export const useToast = (): ((text: string) => void) => useContext(ToastContext)

const TOAST_MS = 8_000

export const ToastProvider = ({ children }: { readonly children: ComponentChildren }) => {
  const [toasts, setToasts] = useState<readonly Toast[]>([])
  const show = useCallback((text: string) => {
    const id = performance.now()
    setToasts(old => [...old.slice(-2), { id, text }])
    setTimeout(() => setToasts(old => old.filter(toast => toast.id !== id)), TOAST_MS)
  }, [])
  const list = useMemo(
    () => (
      <div class="toasts" role="status">
        {toasts.map(({ id, text }) => (
          <Notice key={id} tone="ok" title={text} />
        ))}
      </div>
    ),
    [toasts],
  )
  return (
    <ToastContext.Provider value={show}>
      {children}
      {list}
    </ToastContext.Provider>
  )
}
