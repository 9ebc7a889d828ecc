import { useEffect, useId, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { describeError } from '../api/describe-error.ts'
import { useSettings } from '../api/session.tsx'
import { findStepErrors, toFqdn } from '../domain/deployment-form.ts'
import { toFieldText } from '../domain/field-text.ts'
import { SelectField, TextField } from '../ui/field.tsx'
import { TenantDomain } from './tenant-domain.tsx'
import type { StepProps } from './wizard-state.ts'

/** Typing pauses this long before the service is asked. */
const CHECK_PAUSE_MS = 200

type NameCheck =
  | { readonly kind: 'none' }
  | { readonly kind: 'available'; readonly warning: string | undefined }
  | { readonly kind: 'taken'; readonly text: string }

/** Whether the name is free, as the user types. */
const useNameCheck = (pool: string, subdomain: string, isValid: boolean): NameCheck => {
  const [check, setCheck] = useState<NameCheck>({ kind: 'none' })
  useEffect(() => {
    setCheck({ kind: 'none' })
    if (!isValid) return
    const controller = new AbortController()
    const timer = setTimeout(() => {
      client.checkName({ domain: pool, sub: subdomain }, { signal: controller.signal }).then(
        ({ available, reason, detail }) => {
          if (controller.signal.aborted) return
          setCheck(
            available
              ? { kind: 'available', warning: detail }
              : { kind: 'taken', text: toFieldText(detail ?? reason ?? 'The name is taken.') },
          )
        },
        error => controller.signal.aborted || setCheck({ kind: 'taken', text: describeError(error).title }),
      )
    }, CHECK_PAUSE_MS)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [pool, subdomain, isValid])
  return check
}

const PoolName = ({ wizard: { form, errors, dispatch } }: StepProps) => {
  const { managedDomains } = useSettings()
  const { subdomain: error } = findStepErrors('domain', form)
  const check = useNameCheck(form.pool, form.subdomain, error === undefined && form.subdomain !== '')
  const problem = check.kind === 'taken' ? check.text : undefined
  useEffect(
    () => dispatch({ kind: 'domain-checked', obstacle: problem === undefined ? {} : { subdomain: problem } }),
    [problem, dispatch],
  )
  const good =
    check.kind === 'available' ? `${toFqdn(form)} is free.${check.warning ? ` ${check.warning}` : ''}` : undefined
  return (
    <>
      <SelectField
        label="Pool"
        value={form.pool}
        error={errors.pool}
        options={managedDomains.map(pool => [pool, pool] as const)}
        onChange={pool => dispatch({ kind: 'changed', fields: { pool } })}
      />
      <TextField
        label="Subdomain"
        hint="One label of a-z, 0-9 and hyphens, beginning with a letter."
        value={form.subdomain}
        error={errors.subdomain ?? problem ?? (form.subdomain === '' ? undefined : error)}
        good={good}
        onInput={subdomain => dispatch({ kind: 'changed', fields: { subdomain } })}
      />
    </>
  )
}

const modes = [
  ['pool', 'A name of a pool'],
  ['byo', 'A domain of the tenant'],
] as const

export const DomainStep = ({ wizard }: StepProps) => {
  const { form, dispatch } = wizard
  const group = useId()
  return (
    <>
      <fieldset>
        <legend>Kind of domain</legend>
        {modes.map(([mode, label]) => (
          <label key={mode} class="choice">
            <input
              type="radio"
              name={group}
              checked={form.mode === mode}
              onChange={() => dispatch({ kind: 'changed', fields: { mode } })}
            />
            {label}
          </label>
        ))}
      </fieldset>
      {form.mode === 'pool' ? <PoolName wizard={wizard} /> : <TenantDomain wizard={wizard} />}
    </>
  )
}

const Providers = ({ wizard: { form, errors, dispatch } }: StepProps) => {
  const { deploymentProviders } = useSettings()
  const toggle = (provider: string) => {
    const others = form.providers.filter(other => other !== provider)
    const providers = form.providers.includes(provider) ? others : [...others, provider]
    dispatch({ kind: 'changed', fields: { providers } })
  }
  return (
    <fieldset class="field">
      <legend>Providers</legend>
      {deploymentProviders.map(provider => (
        <label key={provider} class="choice">
          <input type="checkbox" checked={form.providers.includes(provider)} onChange={() => toggle(provider)} />
          {provider}
        </label>
      ))}
      {errors.providers && (
        <div class="error" role="alert">
          {errors.providers}
        </div>
      )}
    </fieldset>
  )
}

export const OrganisationStep = ({ wizard }: StepProps) => {
  const { form, errors, dispatch } = wizard
  /** Shows the error of a field when it has been left. */
  const check = (field: 'orgName' | 'orgEmail' | 'region') => {
    const error = findStepErrors('organisation', form)[field]
    if (form[field] !== '' && error !== undefined) dispatch({ kind: 'checked', errors: { ...errors, [field]: error } })
  }
  const text = (field: 'orgName' | 'orgEmail' | 'region') => ({
    value: form[field],
    error: errors[field],
    onInput: (value: string) => dispatch({ kind: 'changed', fields: { [field]: value } }),
    onBlur: () => check(field),
  })
  return (
    <>
      <TextField label="Organisation" {...text('orgName')} />
      <TextField
        label="Mail address"
        type="email"
        hint="Of the people who operate the tenant's part."
        {...text('orgEmail')}
      />
      <Providers wizard={wizard} />
      <TextField label="Region" hint="Of the provider, such as fsn1." {...text('region')} />
    </>
  )
}
