import { ProblemError } from '@pool/client'
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks'
import { client, createIdempotencyKey } from '../api/client.ts'
import { useSettings } from '../api/session.tsx'
import {
  steps as allSteps,
  findSteps,
  formatDraft,
  hasStorage,
  type Step,
  toRequestBody,
} from '../domain/deployment-form.ts'
import { createWizard, type WizardEvent, type WizardState, wizardReducer } from '../domain/wizard-reducer.ts'
import type { SecretKeys } from '../ui/field.tsx'

const DRAFT_KEY = 'new-deployment'

export const discardDraft = (): void => sessionStorage.removeItem(DRAFT_KEY)

export interface Wizard extends WizardState {
  readonly dispatch: (event: WizardEvent) => void
  readonly steps: readonly Step[]
  /** The Idempotency-Key of the challenge and of the deployment: a challenge proves the domain for this key only. */
  readonly idempotencyKey: string
  /** Keeps the keys of the object storage in memory until the deployment is created. */
  readonly keepKeys: (keys: SecretKeys) => void
  /** Creates the deployment and resolves with its id. On a rejection, the errors are at their fields. */
  readonly create: () => Promise<string>
}

export interface StepProps {
  readonly wizard: Wizard
}

/** The form, which survives a reload, and the keys, which do not. */
export const useWizard = (): Wizard => {
  const settings = useSettings()
  const [state, dispatch] = useReducer(wizardReducer, settings, given =>
    createWizard(given, sessionStorage.getItem(DRAFT_KEY)),
  )
  const [idempotencyKey] = useState(createIdempotencyKey)
  const keys = useRef<SecretKeys | null>(null)
  const { form, step } = state
  // Before the page is shown: a reload keeps what can be seen.
  useLayoutEffect(() => sessionStorage.setItem(DRAFT_KEY, formatDraft({ step, form })), [step, form])
  // Their step asks for them again.
  useLayoutEffect(() => {
    if (step === 'storage') keys.current = null
  }, [step])
  // Each step is an entry of the browser's history, so that Back opens the step before and keeps what was entered.
  const isFirstStep = useRef(true)
  useLayoutEffect(() => {
    if (isFirstStep.current) history.replaceState({ step }, '')
    else if (history.state?.step !== step) history.pushState({ step }, '')
    isFirstStep.current = false
  }, [step])
  useLayoutEffect(() => {
    const open = ({ state: entry }: PopStateEvent) => {
      const opened = allSteps.find(name => name === entry?.step)
      if (opened) dispatch({ kind: 'opened', step: opened })
    }
    addEventListener('popstate', open)
    return () => removeEventListener('popstate', open)
  }, [])
  useEffect(
    () => () => {
      keys.current = null
    },
    [],
  )
  return {
    ...state,
    dispatch,
    steps: findSteps(form, settings),
    idempotencyKey,
    keepKeys: taken => {
      keys.current = taken
    },
    create: async () => {
      const storageKeys = hasStorage(form, settings) ? keys.current : {}
      if (storageKeys === null) {
        dispatch({ kind: 'opened', step: 'storage' })
        throw new Error('The keys are not in memory any more: enter them again.')
      }
      dispatch({ kind: 'checked', errors: {} })
      const body = { ...toRequestBody(form, settings), ...storageKeys }
      try {
        const { id } = await client.createDeployment(body, { idempotencyKey })
        keys.current = null
        discardDraft()
        return id
      } catch (error) {
        if (error instanceof ProblemError) {
          const { code, detail, body: problem } = error
          dispatch({ kind: 'rejected', problem: { code, detail, faults: problem.faults } })
        }
        throw error
      }
    },
  }
}
