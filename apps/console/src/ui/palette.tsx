import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type Command, filterCommands } from '../domain/commands.ts'
import { Dialog } from './dialog.tsx'

interface PaletteProps {
  readonly commands: readonly Command[]
  /** Finds further commands in the service, such as names. */
  readonly search: (text: string, signal: AbortSignal) => Promise<readonly Command[]>
  readonly onClose: () => void
}

/** Typing pauses this long before the service is asked. */
const SEARCH_PAUSE_MS = 120

/** A combobox of pages and actions (WAI-ARIA APG, "Editable Combobox With List Autocomplete"). */
export const Palette = ({ commands, search, onClose }: PaletteProps) => {
  const [text, setText] = useState('')
  const [found, setFound] = useState<readonly Command[]>([])
  const [selected, setSelected] = useState(0)
  const listId = useId()
  const list = useRef<HTMLDivElement>(null)
  const options = [...filterCommands(commands, text), ...found]
  const current = options[Math.min(selected, options.length - 1)]

  // Before the next key: Enter runs an option of the text that is shown.
  useLayoutEffect(() => {
    const controller = new AbortController()
    setFound([])
    setSelected(0)
    if (text.trim() === '') return
    const timer = setTimeout(() => {
      search(text.trim(), controller.signal).then(
        commands => controller.signal.aborted || setFound(commands),
        () => undefined, // the pages have their own errors
      )
    }, SEARCH_PAUSE_MS)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [text, search])

  const currentId = current?.id
  // The selected option has to be visible.
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' })
  }, [currentId])

  const run = (command: Command | undefined) => {
    if (command === undefined) return
    onClose()
    command.run()
  }
  const move = (step: number) => setSelected(old => (old + step + options.length) % Math.max(1, options.length))
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => run(current),
    // The browser would only empty the input.
    Escape: onClose,
  }
  return (
    <Dialog title="Go to a page or run a command" class="palette" onClose={onClose}>
      <input
        type="search"
        role="combobox"
        aria-label="Page, command or name"
        aria-expanded="true"
        aria-controls={listId}
        aria-autocomplete="list"
        aria-activedescendant={current ? `${listId}-${current.id}` : undefined}
        autocomplete="off"
        spellcheck={false}
        value={text}
        placeholder="Type a page, a command or the beginning of a name"
        onInput={event => setText(event.currentTarget.value)}
        onKeyDown={event => {
          const handle = keys[event.key]
          if (handle === undefined) return
          event.preventDefault()
          handle()
        }}
      />
      <div id={listId} role="listbox" aria-label="Results" ref={list}>
        {options.map(command => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys of the combobox select an option.
          <div
            key={command.id}
            id={`${listId}-${command.id}`}
            role="option"
            tabIndex={-1}
            aria-selected={command === current}
            onClick={() => run(command)}
          >
            <span>{command.label}</span>
            <span class="muted">{command.hint}</span>
          </div>
        ))}
      </div>
      {options.length === 0 && <p class="muted">Nothing found. Type the beginning of a name, or of a page.</p>}
    </Dialog>
  )
}
