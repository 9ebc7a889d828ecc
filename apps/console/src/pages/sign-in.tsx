import { useLayoutEffect, useRef } from 'preact/hooks'
import { useAction } from '../api/resource.ts'
import { useSession } from '../api/session.tsx'
import { formatTitle } from '../domain/route.ts'
import { ErrorNotice, Notice } from '../ui/feedback.tsx'
import { Field } from '../ui/field.tsx'

/** Exchanges an operator token for a session. The page does not keep the token. */
export const SignInPage = ({ reason }: { readonly reason: string }) => {
  const { signIn } = useSession()
  const input = useRef<HTMLInputElement>(null)
  // Before the page is shown: the first key counts too.
  useLayoutEffect(() => {
    document.title = formatTitle('Sign in')
    input.current?.focus()
  }, [])
  const action = useAction(async () => {
    const token = input.current?.value.trim() ?? ''
    await signIn(token)
  })
  return (
    <main class="sign-in">
      <form
        class="panel"
        onSubmit={event => {
          event.preventDefault()
          action.run()
        }}
      >
        <header>
          <h1 tabIndex={-1}>Operator console</h1>
        </header>
        <div class="body">
          {reason && action.error === undefined && <Notice tone="warn" title={reason} isAlert />}
          <Field
            label="Operator token"
            hint="One of PDM_OPERATOR_TOKENS. It is exchanged for a session of this browser and not stored in the page."
          >
            {attributes => (
              <input {...attributes} ref={input} type="password" autocomplete="off" spellcheck={false} required />
            )}
          </Field>
          {action.error !== undefined && <ErrorNotice error={action.error} />}
          <div class="actions">
            <button type="submit" class="primary" disabled={action.isRunning}>
              {action.isRunning ? 'Signing in …' : 'Sign in'}
            </button>
          </div>
        </div>
      </form>
    </main>
  )
}
