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

const LOCAL_TOKEN = /^#token=([!-~]+)$/

/** The token that `pnpm start` puts into the fragment of its link. It is removed from the address and from the history. */
const takeTokenFromAddress = (): string | null => {
  const token = LOCAL_TOKEN.exec(location.hash)?.[1] ?? null
  if (token !== null) history.replaceState(null, '', location.pathname + location.search)
  return token
}

const ENDED =
  'The session has ended: it expired, another tab ended it, or its token was removed. Sign in again to continue.'
const SIGNED_OUT: SessionState = { kind: 'signed-out', reason: '' }

const openSession = async (session: OperatorSession): Promise<SessionState> => {
  const settings = await client.getSettings()
  startChanges()
  return { kind: 'signed-in', session, settings }
}

const resumeSession = async (): Promise<SessionState> => {
  const token = takeTokenFromAddress()
  try {
    return await openSession(token === null ? await client.getSession() : await client.startSession({ token }))
  } catch (error) {
    return error instanceof ProblemError && error.status === 401 ? SIGNED_OUT : { kind: 'failed', error }
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
