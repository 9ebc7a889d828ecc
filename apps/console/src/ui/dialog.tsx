import type { ComponentChildren, RefObject } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { isOutdated } from '../api/describe-error.ts'
import { useAction } from '../api/resource.ts'
import { ErrorNotice } from './feedback.tsx'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly class?: string
  /** Makes the dialog a form, which Enter in a field submits. */
  readonly onSubmit?: () => void
  /** Whether its action is done, so that the element which opened the dialog may not stay on the page. */
  readonly isDone?: RefObject<boolean>
  /** False: Escape does not close it. */
  readonly canClose?: boolean
}

/** A modal dialog. Escape closes it. The focus returns to where it was, or to the heading of the page after the action. */
export const Dialog = ({
  title,
  onClose,
  children,
  class: className,
  onSubmit,
  isDone,
  canClose = true,
}: DialogProps) => {
  const element = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  // Before the next key: what is typed immediately belongs to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement
    const dialog = element.current
    dialog?.showModal()
    return () => {
      // While it is open, nothing outside can have the focus.
      dialog?.close()
      const canReturn = before instanceof HTMLElement && before.isConnected && isDone?.current !== true
      const target = canReturn ? before : document.querySelector<HTMLElement>('main h1')
      target?.focus({ preventScroll: true })
    }
  }, [isDone])
  // The browser closes a dialog at the second Escape, whatever the handler of `cancel` does. The focus can be outside: a button
  // that is disabled loses it.
  useLayoutEffect(() => {
    if (canClose) return
    const keepOpen = (event: KeyboardEvent) => {
      if (event.key === 'Escape') event.preventDefault()
    }
    addEventListener('keydown', keepOpen)
    return () => removeEventListener('keydown', keepOpen)
  }, [canClose])
  const content = (
    <>
      <h2 id={titleId}>{title}</h2>
      {children}
    </>
  )
  return (
    <dialog
      ref={element}
      class={className}
      aria-labelledby={titleId}
      onCancel={event => {
        event.preventDefault()
        if (canClose) onClose()
      }}
    >
      {onSubmit === undefined ? (
        <div class="content">{content}</div>
      ) : (
        <form
          class="content"
          onSubmit={event => {
            event.preventDefault()
            onSubmit()
          }}
        >
          {content}
        </form>
      )}
    </dialog>
  )
}

interface ConfirmDialogProps {
  readonly title: string
  /** What will happen. */
  readonly children: ComponentChildren
  readonly confirmLabel: string
  readonly isDangerous?: boolean
  /** False while something that is needed is missing. */
  readonly canConfirm?: boolean
  readonly onConfirm: () => Promise<void>
  readonly onClose: () => void
}

/**
 * States what will happen, and does it on confirmation. It stays open until the outcome is known, and with the error if that
 * fails.
 */
export const ConfirmDialog = ({
  title,
  children,
  confirmLabel,
  isDangerous = false,
  canConfirm = true,
  onConfirm,
  onClose,
}: ConfirmDialogProps) => {
  const isDone = useRef(false)
  const action = useAction(async () => {
    await onConfirm()
    isDone.current = true
    onClose()
  })
  return (
    <Dialog title={title} onClose={onClose} onSubmit={action.run} isDone={isDone} canClose={!action.isRunning}>
      {children}
      {action.error !== undefined && <ErrorNotice error={action.error} />}
      {isOutdated(action.error) && (
        <p>It may have been done already, here or elsewhere: close this dialog, and look at the current state.</p>
      )}
      <div class="actions">
        <button type="button" disabled={action.isRunning} onClick={onClose}>
          Cancel
        </button>
        <button
          type="submit"
          class={isDangerous ? 'danger primary' : 'primary'}
          disabled={!canConfirm}
          // A button that is disabled would lose the focus.
          aria-disabled={action.isRunning}
        >
          {action.isRunning ? 'Working …' : confirmLabel}
        </button>
      </div>
    </Dialog>
  )
}

/** A page has at most one dialog: it shows the subject that was opened last, until it is closed. */
export const useDialog = <Subject,>(render: (subject: Subject, close: () => void) => ComponentChildren) => {
  const [opened, setOpened] = useState<{ readonly subject: Subject } | null>(null)
  return {
    open: (subject: Subject) => setOpened({ subject }),
    dialog: opened && render(opened.subject, () => setOpened(null)),
  }
}
