import type { DomainChallenge, DomainCheck } from '@pool/contract'
import { useEffect, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { type Resource, useAction, useResource } from '../api/resource.ts'
import { useSettings } from '../api/session.tsx'
import { describeProof, findStepErrors, toFqdn } from '../domain/deployment-form.ts'
import { toFieldText } from '../domain/text.ts'
import { CopyButton, Facts, Status } from '../ui/facts.tsx'
import { ErrorNotice, Notice } from '../ui/feedback.tsx'
import { TextField } from '../ui/field.tsx'
import { Time, useInterval } from '../ui/time.tsx'
import type { StepProps } from './wizard-state.ts'

/** Typing pauses this long before the service looks the domain up. */
const CHECK_PAUSE_MS = 400
/** After this time, a record that was not visible is looked up again. */
const RECHECK_MS = 5_000

/** Whether a deployment can have the domain, as the user types. */
const useDomainCheck = (domain: string, isValid: boolean, idempotencyKey: string): Resource<DomainCheck> => {
  const [settled, setSettled] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setSettled(domain), CHECK_PAUSE_MS)
    return () => clearTimeout(timer)
  }, [domain])
  return useResource(signal => client.checkDomain({ domain }, { idempotencyKey, signal }), {
    key: domain,
    isEnabled: isValid && settled === domain,
  })
}

const Record = ({ challenge }: { readonly challenge: DomainChallenge }) => (
  <Notice title="Create this record in the DNS of the domain:">
    <Facts
      facts={{
        Name: (
          <>
            <code>{challenge.name}</code> <CopyButton text={challenge.name} what="the name" />
          </>
        ),
        Type: challenge.type,
        Value: (
          <>
            <code>{challenge.value}</code> <CopyButton text={challenge.value} what="the value" />
          </>
        ),
        'Valid until': <Time at={challenge.expiresAt} />,
      }}
    />
  </Notice>
)

interface ProofProps {
  readonly domain: string
  readonly isValid: boolean
  readonly idempotencyKey: string
  readonly check: Resource<DomainCheck>
}

/** The TXT record that proves the domain, and whether the service sees it. */
const Proof = ({ domain, isValid, idempotencyKey, check }: ProofProps) => {
  const [challenge, setChallenge] = useState<DomainChallenge | null>(null)
  const request = useAction(async () => {
    setChallenge(await client.createDomainChallenge({ domain }, { idempotencyKey }))
    check.reload()
  })
  const record = challenge?.domain === domain ? challenge : null
  const isWaiting = record !== null && check.data?.proof !== 'proven'
  useInterval(() => isWaiting && check.reload(), RECHECK_MS)
  const proof = check.data && record && describeProof(check.data)
  return (
    <>
      <p>
        A TXT record proves that the tenant controls the domain. The service looks it up again when the deployment is
        created. The value is for this form only: after a reload, request another one.
      </p>
      {record === null && (
        <div>
          <button type="button" disabled={!isValid || request.isRunning} onClick={request.run}>
            Request the TXT record
          </button>
        </div>
      )}
      {request.error !== undefined && <ErrorNotice error={request.error} />}
      {record !== null && <Record challenge={record} />}
      {proof && (
        <div class="field">
          <div role="status">
            <Status {...proof} />
          </div>
          {isWaiting && (
            <div>
              <button type="button" onClick={check.reload}>
                Look it up again
              </button>
            </div>
          )}
        </div>
      )}
    </>
  )
}

/** A domain of the tenant, checked as the user types, with the record that proves it. */
export const TenantDomain = ({ wizard: { form, errors, dispatch, idempotencyKey } }: StepProps) => {
  const { requiresDomainProof } = useSettings()
  const domain = toFqdn(form)
  const isValid = findStepErrors('domain', form).fqdn === undefined
  const check = useDomainCheck(domain, isValid, idempotencyKey)
  const detail = check.data?.available === false ? (check.data.detail ?? check.data.reason) : undefined
  const obstacle = detail === undefined ? undefined : toFieldText(detail)
  useEffect(
    () => dispatch({ kind: 'domain-checked', obstacle: obstacle === undefined ? {} : { fqdn: obstacle } }),
    [obstacle, dispatch],
  )
  return (
    <>
      <TextField
        label="Domain of the tenant"
        hint="A fully qualified domain name such as cloud.acme.example."
        value={form.fqdn}
        error={errors.fqdn ?? obstacle}
        good={check.data?.available ? `No deployment has ${domain}.` : undefined}
        onInput={fqdn => dispatch({ kind: 'changed', fields: { fqdn } })}
        onBlur={() => form.fqdn !== '' && dispatch({ kind: 'checked', errors: findStepErrors('domain', form) })}
      />
      {check.error !== undefined && <ErrorNotice error={check.error} onRetry={check.reload} />}
      {requiresDomainProof ? (
        <Proof domain={domain} isValid={isValid} idempotencyKey={idempotencyKey} check={check} />
      ) : (
        <p class="muted">This service does not require a proof of the domain.</p>
      )}
    </>
  )
}
