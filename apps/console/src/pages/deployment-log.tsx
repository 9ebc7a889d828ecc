import { ProblemError } from '@pool/client'
import type { Deployment } from '@pool/contract'
import { useEffect, useRef, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import {
  appendLines,
  EMPTY_LOG,
  filterLines,
  type LogBuffer,
  type LogLevel,
  type LogLine,
  MAX_LINES,
  toLogFile,
  toLogLine,
} from '../domain/log-buffer.ts'
import { EmptyState, ErrorNotice } from '../ui/feedback.tsx'
import { TextField } from '../ui/field.tsx'
import { LogView } from '../ui/log-view.tsx'
import { Panel } from '../ui/shell.tsx'

/** Lines that arrive within this time are rendered in one go. */
const RENDER_MS = 100
/** After a failure, until the page connects again. */
const RECONNECT_MS = 5_000
const LEVELS: readonly LogLevel[] = ['info', 'warn', 'error']

interface LiveLog {
  readonly buffer: LogBuffer
  readonly isEnded: boolean
  /** Why the page has no connection. It connects again, unless the deployment was deleted. */
  readonly error: unknown
}

const isDeleted = (error: unknown): boolean => error instanceof ProblemError && error.status === 404

/** Resolves after `ms` milliseconds, and earlier when `signal` is aborted. */
const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })

const describeState = (isEnded: boolean, error: unknown): string => {
  if (error !== undefined) return isEnded ? 'Interrupted' : 'Connecting again …'
  return isEnded ? 'The log is complete.' : 'Live'
}

const useLiveLog = (id: string, runKey: string, onEnd: (deployment: Deployment) => void) => {
  const [attempt, setAttempt] = useState(0)
  const [log, setLog] = useState<LiveLog>({ buffer: EMPTY_LOG, isEnded: false, error: undefined })
  const latestOnEnd = useRef(onEnd)
  latestOnEnd.current = onEnd
  // Another run continues the log, and so does another attempt.
  useEffect(() => {
    const controller = new AbortController()
    let waiting: LogLine[] = []
    let timer: ReturnType<typeof setTimeout> | undefined
    const flush = () => {
      timer = undefined
      const lines = waiting
      waiting = []
      setLog(old => ({ ...old, buffer: appendLines(old.buffer, lines) }))
    }
    const { signal } = controller
    let lastEventId = ''
    const readLines = async () => {
      for await (const entry of client.followLogs({ id, lastEventId }, { signal })) {
        if (entry.kind === 'done') {
          latestOnEnd.current(entry.deployment)
          break
        }
        lastEventId = entry.id
        waiting.push(toLogLine(entry.id, entry.line))
        // More than the page keeps cannot be shown anyway.
        if (waiting.length > MAX_LINES) flush()
        timer ??= setTimeout(flush, RENDER_MS)
      }
    }
    const follow = async () => {
      setLog(old => ({ ...old, isEnded: false, error: undefined }))
      for (let isFirst = true; ; isFirst = false) {
        try {
          // Reading a log that has no new lines does not show that the service responds again.
          if (!isFirst) await client.getDeployment({ id }, { signal })
          setLog(old => ({ ...old, error: undefined }))
          await readLines()
          return
        } catch (error) {
          if (signal.aborted || isDeleted(error)) throw error
          setLog(old => ({ ...old, error }))
          await pause(RECONNECT_MS, signal)
        }
      }
    }
    follow().then(
      () => {
        clearTimeout(timer)
        flush()
        setLog(old => ({ ...old, isEnded: true }))
      },
      error => {
        if (!signal.aborted) setLog(old => ({ ...old, isEnded: true, error }))
      },
    )
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [id, runKey, attempt])
  return { ...log, retry: () => setAttempt(attempt + 1) }
}

const download = (name: string, text: string): void => {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}

interface DeploymentLogProps {
  readonly id: string
  /** Changes when another run starts. */
  readonly runKey: string
  readonly onEnd: (deployment: Deployment) => void
}

/** The log of a deployment while it grows: search, levels, follow, download. */
export const DeploymentLog = ({ id, runKey, onEnd }: DeploymentLogProps) => {
  const { buffer, isEnded, error, retry } = useLiveLog(id, runKey, onEnd)
  const [search, setSearch] = useState('')
  const [levels, setLevels] = useState<ReadonlySet<LogLevel>>(new Set(LEVELS))
  const [isFollowing, setIsFollowing] = useState(true)
  const lines = filterLines(buffer.lines, { text: search, levels })
  const toggle = (level: LogLevel) => {
    const next = new Set(levels)
    if (!next.delete(level)) next.add(level)
    setLevels(next)
  }
  return (
    <Panel
      title="Log"
      hasPadding={false}
      aside={
        <div class="actions">
          <button type="button" aria-pressed={isFollowing} onClick={() => setIsFollowing(!isFollowing)}>
            Follow
          </button>
          <button type="button" onClick={() => download(`${id}.log`, toLogFile(buffer))}>
            Download
          </button>
        </div>
      }
    >
      <div class="body">
        <search class="filters">
          <TextField class="wide" type="search" label="Search the log" value={search} onInput={setSearch} />
          <fieldset class="segmented">
            <legend>Levels</legend>
            <div>
              {LEVELS.map(level => (
                <button key={level} type="button" aria-pressed={levels.has(level)} onClick={() => toggle(level)}>
                  {level}
                </button>
              ))}
            </div>
          </fieldset>
        </search>
        {error !== undefined && <ErrorNotice error={error} onRetry={retry} />}
      </div>
      {lines.length === 0 ? (
        <EmptyState title={buffer.lines.length === 0 ? 'The log has no lines yet.' : 'No line matches.'}>
          {buffer.lines.length === 0
            ? isEnded
              ? 'The run ended before it wrote one.'
              : 'Lines appear here as soon as the run writes them.'
            : 'Search for another text, or choose more levels.'}
        </EmptyState>
      ) : (
        <LogView lines={lines} search={search} isFollowing={isFollowing} onFollowingChange={setIsFollowing} />
      )}
      <div class="pager">
        <span>
          {lines.length.toLocaleString('en')} of {buffer.lines.length.toLocaleString('en')} lines
          {buffer.droppedCount > 0 && `; ${buffer.droppedCount.toLocaleString('en')} earlier ones are not kept`}
        </span>
        <span role="status">{describeState(isEnded, error)}</span>
      </div>
    </Panel>
  )
}
