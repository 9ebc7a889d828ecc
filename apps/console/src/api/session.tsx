import { ProblemError } from '@pool/client'
import type { OperatorSession, ServiceSettings } from '@pool/contract'
import type { ComponentChildren } from 'preact'
import { createContext } from 'preact'
import { useCallback, useContext, useEffect, useMemo, useState } from 'preact/hooks'
import { startChanges, stopChanges } from './changes.ts'
import { client, onSessionEnd } from './client.ts'

export type SessionState =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** `reason`: why a session that existed has ended. */
  | { readonly kind: 'signed-out'; readonly reason: string }
  | { readonly kind: 'signed-in'; readonly session: OperatorSession; readonly settings: ServiceSettings }

export interface SessionControl {
  readonly state: SessionState
  /** Exchanges an operator token for a session. Rejects if the service rejects the token. */
  readonly signIn: (token: string) => Promise<void>
  readonly signOut: () => Promise<void>
  readonly retry: () => void
}

const SessionContext = createContext<SessionControl | null>(null)

export const useSession = (): SessionControl => {
  const control = useContext(SessionContext)
  if (control === null) throw new Error('SessionProvider is missing.')
  return control
}

/** The settings of the service, within the pages of a session. */
export const useSettings = (): ServiceSettings => {
  const { state } = useSession()
  if (state.kind !== 'signed-in') throw new Error('There is no session.')
  return state.settings
}

const SIGN_IN_CODE = /^#code=([\w.-]+)$/

/** The code in the fragment of the link of `pnpm start`. The browser's history on disk keeps it, so it is for one use. */
const takeCodeFromAddress = (): string | null => {
  const code = SIGN_IN_CODE.exec(location.hash)?.[1] ?? null
  if (code !== null) history.replaceState(null, '', location.pathname + location.search)
  return code
}

const ENDED =
  'The session has ended: it expired, another tab ended it, or its token was removed. Sign in again to continue.'
const CODE_ENDED = 'This link signs in once, within five minutes. Sign in with a token, or start again for a new link.'
const SIGNED_OUT: SessionState = { kind: 'signed-out', reason: '' }

const isUnauthorized = (error: unknown): boolean => error instanceof ProblemError && error.status === 401

const openSession = async (session: OperatorSession): Promise<SessionState> => {
  const settings = await client.getSettings()
  startChanges()
  return { kind: 'signed-in', session, settings }
}

const resumeSession = async (): Promise<SessionState> => {
  const code = takeCodeFromAddress()
  /** Null without a code that can still be used: then the browser may have a session. */
  const startWithCode = async () => {
    if (code === null) return null
    try {
      return await client.startSession({ token: code })
    } catch (error) {
      if (isUnauthorized(error)) return null
      throw error
    }
  }
  try {
    return await openSession((await startWithCode()) ?? (await client.getSession()))
  } catch (error) {
    if (!isUnauthorized(error)) return { kind: 'failed', error }
    return code === null ? SIGNED_OUT : { kind: 'signed-out', reason: CODE_ENDED }
  }
}

export const SessionProvider = ({ children }: { readonly children: ComponentChildren }) => {
  const [state, setState] = useState<SessionState>({ kind: 'unknown' })
  const retry = useCallback(() => void resumeSession().then(setState), [])
  useEffect(retry, [retry])
  useEffect(
    () =>
      onSessionEnd(() => {
        stopChanges()
        setState(old => (old.kind === 'signed-in' ? { kind: 'signed-out', reason: ENDED } : old))
      }),
    [],
  )
  const control = useMemo<SessionControl>(
    () => ({
      state,
      retry,
      signIn: async token => setState(await openSession(await client.startSession({ token }))),
      signOut: async () => {
        await client.endSession()
        stopChanges()
        setState(SIGNED_OUT)
      },
    }),
    [state, retry],
  )
  return <SessionContext.Provider value={control}>{children}</SessionContext.Provider>
}
