import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

/** A page has at most one dialog: it shows the subject that was opened last, until it is closed. */
export const useDialog = <Subject,>(render: (subject: Subject, close: () => void) => ComponentChildren) => {
  const [opened, setOpened] = useState<{ readonly subject: Subject } | null>(null)
  return {
    open: (subject: Subject) => setOpened({ subject }),
    dialog: opened && render(opened.subject, () => setOpened(null)),
  }
}
