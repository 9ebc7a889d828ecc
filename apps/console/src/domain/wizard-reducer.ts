import type { ServiceSettings } from '@pool/contract'
import {
  type CreateProblem,
  createForm,
  type DeploymentForm,
  type FieldErrors,
  findFaultyStep,
  findStepErrors,
  findSteps,
  formatDraft,
  parseDraft,
  type Step,
  toFieldErrors,
} from './deployment-form.ts'

/** The wizard as the page shows it. The keys of the object storage are no part of it. */
export interface WizardState {
  readonly settings: ServiceSettings
  readonly form: DeploymentForm
  readonly step: Step
  readonly errors: FieldErrors
  /** What the service has found wrong with the domain: the next step does not open. */
  readonly obstacle: FieldErrors
}

export type WizardEvent =
  | { readonly kind: 'changed'; readonly fields: Partial<DeploymentForm> }
  /** The fields of a step were checked; no errors: they are valid. */
  | { readonly kind: 'checked'; readonly errors: FieldErrors }
  /** The service has looked up the domain; empty: a deployment can have it. */
  | { readonly kind: 'domain-checked'; readonly obstacle: FieldErrors }
  | { readonly kind: 'opened'; readonly step: Step }
  | { readonly kind: 'continued' }
  /** The service has rejected the deployment. */
  | { readonly kind: 'rejected'; readonly problem: CreateProblem }

/** Continues the draft if there is one. */
export const createWizard = (settings: ServiceSettings, draft: string | null): WizardState => ({
  settings,
  ...(parseDraft(draft, settings) ?? { form: createForm(settings), step: 'domain' }),
  errors: {},
  obstacle: {},
})

const withoutFields = (errors: FieldErrors, fields: object): FieldErrors =>
  Object.fromEntries(Object.entries(errors).filter(([field]) => !(field in fields)))

export const wizardReducer = (state: WizardState, event: WizardEvent): WizardState => {
  const { settings, form, step, errors, obstacle } = state
  switch (event.kind) {
    case 'changed':
      return { ...state, form: { ...form, ...event.fields }, errors: withoutFields(errors, event.fields) }
    case 'checked':
      return { ...state, errors: event.errors }
    case 'domain-checked':
      return { ...state, obstacle: event.obstacle }
    case 'opened': {
      // Forward of the browser can lead past a step that has become invalid.
      const steps = findSteps(form, settings)
      const before = steps.slice(0, Math.max(0, steps.indexOf(event.step)))
      const invalid = before.find(name => Object.keys(findStepErrors(name, form)).length > 0)
      return { ...state, step: invalid ?? event.step }
    }
    case 'continued': {
      const found = { ...(step === 'domain' ? obstacle : {}), ...findStepErrors(step, form) }
      const steps = findSteps(form, settings)
      const following = Object.keys(found).length === 0 ? steps[steps.indexOf(step) + 1] : undefined
      return { ...state, errors: found, step: following ?? step }
    }
    case 'rejected': {
      const found = toFieldErrors(event.problem, form)
      return { ...state, errors: found, step: findFaultyStep(found) ?? step }
    }
  }
}

/** Whether something has been entered. */
export const hasDraft = (state: WizardState): boolean =>
  formatDraft(state) !== formatDraft(createWizard(state.settings, null))
