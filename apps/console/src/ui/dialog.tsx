import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { useAction } from '../api/resource.ts'
import { ErrorNotice } from './feedback.tsx'

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly class?: string
}

/** A modal dialog. Escape closes it, and the focus returns to where it was. */
export const Dialog = ({ title, onClose, children, class: className }: DialogProps) => {
  const element = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  // Before the next key: what is typed immediately belongs to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement
    element.current?.showModal()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      class={className}
      aria-labelledby={titleId}
      onCancel={event => {
        event.preventDefault()
        onClose()
      }}
    >
      <div class="content">
        <h2 id={titleId}>{title}</h2>
        {children}
      </div>
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

/** States what will happen, and does it on confirmation. It stays open with the error if that fails. */
export const ConfirmDialog = ({
  title,
  children,
  confirmLabel,
  isDangerous = false,
  canConfirm = true,
  onConfirm,
  onClose,
}: ConfirmDialogProps) => {
  const action = useAction(async () => {
    await onConfirm()
    onClose()
  })
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {action.error !== undefined && <ErrorNotice error={action.error} />}
      <div class="actions">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          class={isDangerous ? 'danger primary' : 'primary'}
          disabled={!canConfirm || action.isRunning}
          onClick={action.run}
        >
          {action.isRunning ? 'Working …' : confirmLabel}
        </button>
      </div>
    </Dialog>
  )
}
