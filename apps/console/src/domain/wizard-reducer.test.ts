import { expect, test } from 'vitest'
import { type FieldErrors, formatDraft, type Step } from './deployment-form.ts'
import { form, settings } from './example-form.ts'
import { createWizard, hasDraft, type WizardEvent, type WizardState, wizardReducer } from './wizard-reducer.ts'

const start: WizardState = { settings, form, step: 'domain', errors: {}, obstacle: {} }
const at = (step: Step, fields: Partial<WizardState> = {}): WizardState => ({ ...start, step, ...fields })
const withForm = (fields: Partial<WizardState['form']>) => ({ form: { ...form, ...fields } })
const continued: WizardEvent = { kind: 'continued' }
const rejected = (code: string, field = '', detail = 'why'): WizardEvent => ({
  kind: 'rejected',
  problem: { code, detail, faults: field === '' ? [] : [{ field, detail }] },
})

test.each<[string, WizardState, WizardEvent, Step, FieldErrors]>([
  ['a valid step opens the next one', start, continued, 'organisation', {}],
  ['a step without a choice is left out', at('organisation', withForm({ providers: ['local'] })), continued, 'ssh', {}],
  ['object storage is a step of its provider', at('organisation'), continued, 'storage', {}],
  ['the last step stays', at('summary'), continued, 'summary', {}],
  ['a later step opens', start, { kind: 'opened', step: 'ssh' }, 'ssh', {}],
  [
    'but none after an invalid one',
    at('domain', withForm({ region: '' })),
    { kind: 'opened', step: 'ssh' },
    'organisation',
    {},
  ],
  [
    'an invalid field keeps its step',
    at('ssh', withForm({ sshPublicKey: '' })),
    continued,
    'ssh',
    { sshPublicKey: expect.any(String) },
  ],
  [
    'what the service found keeps the step',
    at('domain', { obstacle: { subdomain: 'taken' } }),
    continued,
    'domain',
    { subdomain: 'taken' },
  ],
  ['it only concerns the domain', at('organisation', { obstacle: { subdomain: 'taken' } }), continued, 'storage', {}],
  [
    'a change removes the error of its field',
    at('organisation', { errors: { orgName: 'a', region: 'b' } }),
    { kind: 'changed', fields: { region: 'fsn1' } },
    'organisation',
    { orgName: 'a' },
  ],
  [
    'a check shows its errors',
    at('ssh'),
    { kind: 'checked', errors: { sshPublicKey: 'a' } },
    'ssh',
    { sshPublicKey: 'a' },
  ],
  ['an earlier step opens', at('summary'), { kind: 'opened', step: 'domain' }, 'domain', {}],
  ['a rejected domain opens its step', at('summary'), rejected('subdomain-conflict'), 'domain', { subdomain: 'why' }],
  [
    'rejected keys open their step',
    at('summary'),
    rejected('invalid-deployment', 'objectStorageSecretKey'),
    'storage',
    { objectStorageSecretKey: 'why' },
  ],
  ['another rejection stays', at('summary'), rejected('provisioning-unavailable'), 'summary', {}],
])('%s', (_, state, event, step, errors) => {
  const next = wizardReducer(state, event)
  expect({ step: next.step, errors: next.errors }).toEqual({ step, errors })
})

test('a change and what the service finds are kept', () => {
  const changed = wizardReducer(start, { kind: 'changed', fields: { orgName: 'Globex' } })
  expect(changed.form).toEqual({ ...form, orgName: 'Globex' })
  const obstacle = { subdomain: 'taken' }
  expect(wizardReducer(changed, { kind: 'domain-checked', obstacle })).toEqual({ ...changed, obstacle })
})

test('a wizard continues its draft, and knows whether there is one', () => {
  expect(hasDraft(createWizard(settings, null))).toBe(false)
  const resumed = createWizard(settings, formatDraft({ step: 'organisation', form }))
  expect(resumed).toEqual(at('organisation'))
  expect(hasDraft(resumed)).toBe(true)
})
