import { ProblemError } from '@pool/client'
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { createIdempotencyKey } from '../api/idempotency-key.ts'
import { useSettings } from '../api/session.tsx'
import {
  createForm,
  type FieldErrors,
  findFaultyStep,
  findStepErrors,
  findSteps,
  formatDraft,
  hasStorage,
  parseDraft,
  type Step,
  toFieldErrors,
  toRequestBody,
  type WizardForm,
} from '../domain/wizard.ts'
import type { SecretKeys } from '../ui/secret-fields.tsx'

const DRAFT_KEY = 'new-deployment'

export const discardDraft = (): void => sessionStorage.removeItem(DRAFT_KEY)

export interface WizardState {
  readonly form: WizardForm
  readonly step: Step
  readonly steps: readonly Step[]
  readonly errors: FieldErrors
  readonly hasKeys: boolean
  readonly change: (fields: Partial<WizardForm>) => void
  readonly setErrors: (errors: FieldErrors) => void
  /** What the service has found wrong with the domain: the next step does not open. */
  readonly setObstacle: (errors: FieldErrors) => void
  readonly goTo: (step: Step) => void
  /** Whether something has been entered. */
  readonly hasDraft: boolean
  /** Opens the next step if the fields of this one are valid. */
  readonly next: () => void
  readonly keepKeys: (keys: SecretKeys) => void
  /** The Idempotency-Key of the challenge and of the deployment: a challenge proves the domain for this key only. */
  readonly idempotencyKey: string
  /** Creates the deployment and resolves with its id. On a rejection, the errors are at their fields. */
  readonly create: () => Promise<string>
}

/** The form, which survives a reload, and the keys, which do not. */
export const useWizard = (): WizardState => {
  const settings = useSettings()
  const draft = useMemo(() => parseDraft(sessionStorage.getItem(DRAFT_KEY), settings), [settings])
  const [form, setForm] = useState<WizardForm>(draft?.form ?? createForm(settings))
  const [step, setStep] = useState<Step>(draft?.step ?? 'domain')
  const [errors, setErrors] = useState<FieldErrors>({})
  const keys = useRef<SecretKeys | null>(null)
  const [hasKeys, setHasKeys] = useState(false)
  const [idempotencyKey] = useState(createIdempotencyKey)
  const isCreated = useRef(false)
  const obstacle = useRef<FieldErrors>({})
  const setObstacle = useCallback((found: FieldErrors) => {
    obstacle.current = found
  }, [])

  useEffect(() => {
    if (!isCreated.current) sessionStorage.setItem(DRAFT_KEY, formatDraft({ step, form }))
  }, [step, form])
  useEffect(
    () => () => {
      keys.current = null
    },
    [],
  )
  const forgetKeys = () => {
    keys.current = null
    setHasKeys(false)
  }
  const steps = findSteps(form, settings)
  const goTo = (target: Step) => {
    if (target === 'storage') forgetKeys()
    setStep(target)
  }
  return {
    form,
    step,
    steps,
    errors,
    hasKeys,
    idempotencyKey,
    setErrors,
    setObstacle,
    goTo,
    hasDraft: formatDraft({ step, form }) !== formatDraft({ step: 'domain', form: createForm(settings) }),
    change: fields => {
      setForm(old => ({ ...old, ...fields }))
      setErrors(old => {
        const rest = { ...old }
        for (const field of Object.keys(fields) as (keyof WizardForm)[]) delete rest[field]
        return rest
      })
    },
    next: () => {
      const found = { ...(step === 'domain' ? obstacle.current : {}), ...findStepErrors(step, form) }
      setErrors(found)
      const following = steps[steps.indexOf(step) + 1]
      if (Object.keys(found).length === 0 && following !== undefined) setStep(following)
    },
    keepKeys: taken => {
      keys.current = taken
      setHasKeys(true)
    },
    create: async () => {
      const storageKeys = hasStorage(form, settings) ? keys.current : {}
      if (storageKeys === null) {
        goTo('storage')
        throw new Error('The keys are not in memory any more: enter them again.')
      }
      setErrors({})
      try {
        const { id } = await client.createDeployment(
          { ...toRequestBody(form, settings), ...storageKeys },
          { idempotencyKey },
        )
        isCreated.current = true
        discardDraft()
        forgetKeys()
        return id
      } catch (error) {
        if (error instanceof ProblemError) {
          const { code, detail, body } = error
          const found = toFieldErrors({ code, detail, faults: body.faults }, form)
          setErrors(found)
          const faulty = findFaultyStep(found)
          if (faulty !== undefined && faulty !== 'summary') goTo(faulty)
        }
        throw error
      }
    },
  }
}
