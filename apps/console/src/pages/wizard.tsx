import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useAction } from '../api/resource.ts'
import { stepTitles } from '../domain/deployment-form.ts'
import { hasDraft } from '../domain/wizard-reducer.ts'
import { ConfirmDialog, useDialog } from '../ui/dialog.tsx'
import { ErrorNotice, useToast } from '../ui/feedback.tsx'
import { Link, useRouter } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { discardDraft, useWizard } from './wizard-state.ts'
import { DomainStep, OrganisationStep, SshStep, StorageStep, SummaryStep } from './wizard-steps.tsx'

const Wizard = ({ onDiscard }: { readonly onDiscard: () => void }) => {
  const wizard = useWizard()
  const { open } = useRouter()
  const toast = useToast()
  const { step, steps, dispatch, create } = wizard
  const index = steps.indexOf(step)
  const heading = useRef<HTMLHeadingElement>(null)
  const isFirstRender = useRef(true)
  // The focus follows the step, before the step is shown.
  useLayoutEffect(() => {
    if (!isFirstRender.current) heading.current?.focus()
    isFirstRender.current = false
  }, [step])
  const creation = useAction(async () => {
    const id = await create()
    toast('The deployment has started.')
    open({ page: 'deployment', id })
  })
  const previous = steps[index - 1]
  const stepProps = { wizard }
  return (
    <Page
      title="New deployment"
      crumbs={<Link to={{ page: 'deployments', status: '' }}>Deployments</Link>}
      lead="Nothing starts before the last step. The form survives a reload, without its secrets."
      actions={
        hasDraft(wizard) && (
          <button type="button" onClick={onDiscard}>
            Discard the draft
          </button>
        )
      }
    >
      <ol class="steps" aria-label="Steps">
        {steps.map((name, position) => (
          <li
            key={name}
            class={position < index ? 'done' : ''}
            {...(name === step ? { 'aria-current': 'step' as const } : {})}
          >
            {position < index ? (
              <button type="button" class="plain" onClick={() => dispatch({ kind: 'opened', step: name })}>
                {stepTitles[name]}
              </button>
            ) : (
              stepTitles[name]
            )}
          </li>
        ))}
      </ol>
      <div class="wizard">
        <Panel
          title={
            <span tabIndex={-1} ref={heading}>
              {stepTitles[step]}
            </span>
          }
        >
          {creation.error !== undefined && <ErrorNotice error={creation.error} />}
          <form
            class="form"
            onSubmit={event => {
              event.preventDefault()
              if (step === 'summary') creation.run()
              else if (step !== 'storage') dispatch({ kind: 'continued' })
            }}
          >
            {step === 'domain' && <DomainStep {...stepProps} />}
            {step === 'organisation' && <OrganisationStep {...stepProps} />}
            {step === 'storage' && <StorageStep {...stepProps} />}
            {step === 'ssh' && <SshStep {...stepProps} />}
            {step === 'summary' && <SummaryStep {...stepProps} />}
            {step !== 'storage' && (
              <div class="actions">
                {previous !== undefined && (
                  <button type="button" onClick={() => dispatch({ kind: 'opened', step: previous })}>
                    Back
                  </button>
                )}
                <button type="submit" class="primary" disabled={creation.isRunning}>
                  {step !== 'summary' && 'Continue'}
                  {step === 'summary' && (creation.isRunning ? 'Creating …' : 'Create the deployment')}
                </button>
              </div>
            )}
          </form>
        </Panel>
      </div>
    </Page>
  )
}

/** Orders a deployment in steps, each of which is checked before the next. */
export const WizardPage = () => {
  const toast = useToast()
  const [discards, setDiscards] = useState(0)
  const { open, dialog } = useDialog<'discard'>((_, close) => (
    <ConfirmDialog
      title="Discard the draft"
      confirmLabel="Discard"
      isDangerous
      onClose={close}
      onConfirm={async () => {
        discardDraft()
        setDiscards(discards + 1)
        toast('The form is empty again.')
      }}
    >
      <p>What you have entered is removed from this page and from its storage. Nothing has been created.</p>
    </ConfirmDialog>
  ))
  return (
    <>
      {/* Another form is another request, with keys and an Idempotency-Key of its own. */}
      <Wizard key={discards} onDiscard={() => open('discard')} />
      {dialog}
    </>
  )
}
