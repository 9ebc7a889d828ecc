import { ProblemError } from '@pool/client'
import type { ChangeTopic } from '@pool/contract'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { onChange } from './changes.ts'

/** What a page has read from the service. Data stays on the page while it is read again, and after a failure. */
export interface Resource<Data> {
  readonly data: Data | undefined
  /** Why the last read failed. */
  readonly error: unknown
  readonly isLoading: boolean
  /** Whether the data of this key is not there yet: there is none, or that of the former key is shown. */
  readonly isStale: boolean
  readonly reload: () => void
}

export interface ResourceOptions {
  /** Identifies what is read. Another key discards the data. */
  readonly key: string
  /** The changes after which it is read again. */
  readonly topics?: readonly ChangeTopic[]
  /** Keep the data of the former key until that of the new one is there. */
  readonly keepsPrevious?: boolean
  /** False: nothing is read. */
  readonly isEnabled?: boolean
}

/** Changes in quick succession cause one read. */
const SETTLE_MS = 300
const RETRY_MS = 5_000

/** Whether the same read can succeed later: a request that the service rejects stays wrong. */
const canRecover = (error: unknown): boolean =>
  !(error instanceof ProblemError) || error.status >= 500 || error.status === 429

interface State<Data> {
  readonly key: string
  readonly data: Data | undefined
  /** The key that `data` was read for. */
  readonly dataKey: string | undefined
  readonly error: unknown
  readonly isLoading: boolean
}

/** Reads from the service when the page appears, when the key changes, and after changes. */
export const useResource = <Data>(
  load: (signal: AbortSignal) => Promise<Data>,
  { key, topics = [], keepsPrevious = false, isEnabled = true }: ResourceOptions,
): Resource<Data> => {
  const [state, setState] = useState<State<Data>>({
    key,
    data: undefined,
    dataKey: undefined,
    error: undefined,
    isLoading: true,
  })
  const [attempt, setAttempt] = useState(0)
  const latest = useRef(load)
  latest.current = load
  const reload = useCallback(() => setAttempt(count => count + 1), [])

  // An attempt is a reason to read.
  useEffect(() => {
    if (!isEnabled) return
    const controller = new AbortController()
    let retry: ReturnType<typeof setTimeout> | undefined
    setState(old => ({
      ...old,
      key,
      data: old.key === key || keepsPrevious ? old.data : undefined,
      error: old.key === key ? old.error : undefined,
      isLoading: true,
    }))
    latest.current(controller.signal).then(
      data => {
        if (!controller.signal.aborted) setState({ key, data, dataKey: key, error: undefined, isLoading: false })
      },
      error => {
        if (controller.signal.aborted) return
        setState(old => ({ ...old, error, isLoading: false }))
        if (canRecover(error)) retry = setTimeout(reload, RETRY_MS)
      },
    )
    return () => {
      controller.abort()
      clearTimeout(retry)
    }
  }, [key, attempt, isEnabled, keepsPrevious, reload])

  const topicKey = topics.join(' ')
  useEffect(() => {
    if (topicKey === '') return
    let timer: ReturnType<typeof setTimeout> | undefined
    const end = onChange(changed => {
      if (!changed.some(topic => topicKey.split(' ').includes(topic)) || timer !== undefined) return
      timer = setTimeout(() => {
        timer = undefined
        reload()
      }, SETTLE_MS)
    })
    return () => {
      clearTimeout(timer)
      end()
    }
  }, [topicKey, reload])

  const isCurrent = state.key === key || keepsPrevious
  return {
    data: isCurrent ? state.data : undefined,
    error: state.key === key ? state.error : undefined,
    isLoading: state.isLoading || state.key !== key,
    isStale: state.dataKey !== key,
    reload,
  }
}

/** A call that changes something: at most one at a time. */
export interface Action {
  readonly isRunning: boolean
  readonly error: unknown
  readonly run: () => void
}

/** Runs `perform` when it is requested, and keeps its error until the next run. */
export const useAction = (perform: () => Promise<void>): Action => {
  const [{ isRunning, error }, setState] = useState<{ isRunning: boolean; error: unknown }>({
    isRunning: false,
    error: undefined,
  })
  const isMounted = useRef(true)
  useEffect(
    () => () => {
      isMounted.current = false
    },
    [],
  )
  const run = () => {
    if (isRunning) return
    setState({ isRunning: true, error: undefined })
    perform().then(
      () => isMounted.current && setState({ isRunning: false, error: undefined }),
      thrown => isMounted.current && setState({ isRunning: false, error: thrown }),
    )
  }
  return { isRunning, error, run }
}
