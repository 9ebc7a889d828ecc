import { accessKeyError, isObjectStorageRegion, secretKeyError } from '@pool/contract'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { describeError } from '../api/describe-error.ts'
import { useAction } from '../api/resource.ts'
import { useSettings } from '../api/session.tsx'
import { renderCurl } from '../domain/curl.ts'
import {
  describeBucketError,
  findStepErrors,
  hasStorage,
  toBucketName,
  toFqdn,
  toRequestBody,
} from '../domain/deployment-form.ts'
import { toFieldText } from '../domain/text.ts'
import { CopyButton, Facts } from '../ui/facts.tsx'
import { ErrorNotice } from '../ui/feedback.tsx'
import { Choice, Field, SecretFields, SelectField, TextField, takeKeys } from '../ui/field.tsx'
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
      <TextField label="Region" hint="Of the provider, such as fsn1, or local for local." {...text('region')} />
    </>
  )
}

/** Checks the keys at the provider before it opens the next step. */
export const StorageStep = ({ wizard }: StepProps) => {
  const { form, errors, steps, dispatch, keepKeys } = wizard
  const { objectStorage } = useSettings()
  const accessKey = useRef<HTMLInputElement>(null)
  const secretKey = useRef<HTMLInputElement>(null)
  const previous = steps[steps.indexOf('storage') - 1] ?? 'domain'
  const check = useAction(async () => {
    const access = accessKey.current?.value.trim() ?? ''
    const secret = secretKey.current?.value.trim() ?? ''
    const accessError = accessKeyError(access)
    const secretError = secretKeyError(secret)
    const found = {
      ...findStepErrors('storage', form),
      ...(accessError === null ? {} : { objectStorageAccessKey: accessError }),
      ...(secretError === null ? {} : { objectStorageSecretKey: secretError }),
    }
    dispatch({ kind: 'checked', errors: found })
    const region = form.objectStorageRegion
    if (Object.keys(found).length > 0 || !isObjectStorageRegion(region)) return
    const keys = { region, accessKey: access, secretKey: secret, sovereignFQDN: toFqdn(form) }
    const { valid, message, bucket } = await client.validateObjectStorageKeys(keys)
    if (!valid) {
      const field = message.includes('(InvalidAccessKeyId)') ? 'objectStorageAccessKey' : 'objectStorageSecretKey'
      dispatch({ kind: 'checked', errors: { [field]: message } })
      return
    }
    const bucketError = describeBucketError(bucket, form)
    if (bucketError !== undefined) {
      dispatch({ kind: 'checked', errors: { adoptBucket: bucketError } })
      return
    }
    keepKeys(takeKeys(accessKey, secretKey))
    dispatch({ kind: 'continued' })
  })
  return (
    <>
      <p>
        Backups of the tenant go to a bucket at {objectStorage.provider} ({objectStorage.domain}). The keys are checked
        there now, used for this deployment, and stored neither by this page nor by the service.
      </p>
      <SelectField
        label="Region of the object storage"
        value={form.objectStorageRegion}
        error={errors.objectStorageRegion}
        options={objectStorage.regions.map(region => [region, region] as const)}
        onChange={objectStorageRegion => dispatch({ kind: 'changed', fields: { objectStorageRegion } })}
      />
      <SecretFields
        accessKey={accessKey}
        secretKey={secretKey}
        accessKeyError={errors.objectStorageAccessKey}
        secretKeyError={errors.objectStorageSecretKey}
      />
      {(errors.adoptBucket !== undefined || form.adoptBucket) && (
        <div class="field">
          {errors.adoptBucket && (
            <div class="error" role="alert">
              {errors.adoptBucket}
            </div>
          )}
          <Choice
            isChecked={form.adoptBucket}
            onChange={adoptBucket => dispatch({ kind: 'changed', fields: { adoptBucket } })}
          >
            Use the bucket that exists, with its content
          </Choice>
        </div>
      )}
      {check.error !== undefined && <ErrorNotice error={check.error} />}
      <div class="actions">
        <button type="button" onClick={() => dispatch({ kind: 'opened', step: previous })}>
          Back
        </button>
        <button type="submit" class="primary" disabled={check.isRunning} onClick={check.run}>
          {check.isRunning ? 'Checking the keys …' : 'Check the keys and continue'}
        </button>
      </div>
    </>
  )
}

/** Larger files are not SSH keys. */
const MAX_KEY_FILE_BYTES = 64 * 1_024

export const SshStep = ({ wizard: { form, errors, dispatch } }: StepProps) => {
  const [fileError, setFileError] = useState('')
  const fileId = useId()
  const error = form.sshPublicKey === '' ? undefined : findStepErrors('ssh', form).sshPublicKey
  const readFile = async (file: File | undefined) => {
    if (file === undefined) return
    const isSmall = file.size <= MAX_KEY_FILE_BYTES
    setFileError(isSmall ? '' : 'The file is too large for an SSH key: choose a file such as id_ed25519.pub.')
    if (isSmall) dispatch({ kind: 'changed', fields: { sshPublicKey: (await file.text()).trim() } })
  }
  return (
    <>
      <Field
        label="SSH public key"
        hint="One line as in ~/.ssh/id_ed25519.pub. It opens the machines of the tenant."
        error={errors.sshPublicKey ?? error}
        good={form.sshPublicKey !== '' && error === undefined ? 'The key is valid.' : undefined}
      >
        {attributes => (
          <textarea
            {...attributes}
            rows={4}
            spellcheck={false}
            autocomplete="off"
            value={form.sshPublicKey}
            onInput={event => dispatch({ kind: 'changed', fields: { sshPublicKey: event.currentTarget.value } })}
          />
        )}
      </Field>
      <div class="field">
        <label for={fileId}>Or read it from a file</label>
        <input
          id={fileId}
          type="file"
          accept=".pub,text/plain"
          onChange={event => void readFile(event.currentTarget.files?.[0])}
        />
        {fileError && (
          <div class="error" role="alert">
            {fileError}
          </div>
        )}
      </div>
    </>
  )
}

export const SummaryStep = ({ wizard: { form, errors, idempotencyKey } }: StepProps) => {
  const settings = useSettings()
  const isStored = hasStorage(form, settings)
  const body = toRequestBody(form, settings)
  const command = renderCurl({ origin: location.origin, body, hasKeys: isStored, idempotencyKey })
  return (
    <>
      <Facts
        facts={{
          Domain: <code>{toFqdn(form)}</code>,
          Organisation: `${form.orgName}, ${form.orgEmail}`,
          Providers: form.providers.join(', '),
          Region: form.region,
          Bucket: isStored && (
            <>
              <code>{toBucketName(form, settings)}</code> in {form.objectStorageRegion}
              {form.adoptBucket && ', with the content that it has'}
            </>
          ),
          'SSH key': <code>{form.sshPublicKey}</code>,
        }}
      />
      <p>
        The service reserves the name, checks the {isStored ? 'keys and the ' : ''}domain again, and starts Terraform.
        When it has ended, the name points to the new load balancer.
      </p>
      {errors.form && (
        <div class="field">
          <div class="error" role="alert">
            {errors.form}
          </div>
        </div>
      )}
      <details>
        <summary>The same request with curl</summary>
        <p class="muted">
          In bash{isStored ? ', with jq' : ''}. It reads its secrets from files of the working directory: operator-token
          {isStored ? ', access-key and secret-key' : ''}.
        </p>
        <pre class="code">{command}</pre>
        <CopyButton text={command} what="the command" />
      </details>
    </>
  )
}
