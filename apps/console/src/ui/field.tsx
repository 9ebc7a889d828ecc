import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'

interface FieldProps {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly error?: string | undefined
  readonly good?: string | undefined
  readonly class?: string
  readonly children: (attributes: FieldAttributes) => ComponentChildren
}

/** What connects a control with its label and its texts. */
interface FieldAttributes {
  readonly id: string
  readonly 'aria-describedby'?: string
  readonly 'aria-invalid'?: 'true'
}

/** A control with its label, a hint, and the error of its value. */
export const Field = ({ label, hint, error, good, class: className = '', children }: FieldProps) => {
  const id = useId()
  const described = [hint && `${id}-hint`, error && `${id}-error`, good && `${id}-good`].filter(Boolean).join(' ')
  return (
    <div class={`field ${className}`}>
      <label for={id}>{label}</label>
      {children({
        id,
        ...(described ? { 'aria-describedby': described } : {}),
        ...(error ? { 'aria-invalid': 'true' as const } : {}),
      })}
      {hint && (
        <div class="hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
      <div aria-live="polite">
        {error && (
          <div class="error" id={`${id}-error`}>
            {error}
          </div>
        )}
        {good && (
          <div class="good" id={`${id}-good`}>
            {good}
          </div>
        )}
      </div>
    </div>
  )
}

interface SelectFieldProps {
  readonly label: string
  readonly value: string
  readonly options: readonly (readonly [value: string, label: string])[]
  readonly onChange: (value: string) => void
  readonly hint?: ComponentChildren
  readonly error?: string | undefined
}

export const SelectField = ({ label, value, options, onChange, hint, error }: SelectFieldProps) => (
  <Field label={label} hint={hint} error={error}>
    {attributes => (
      <select {...attributes} value={value} onChange={event => onChange(event.currentTarget.value)}>
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    )}
  </Field>
)

interface TextFieldProps {
  readonly label: string
  readonly value: string
  readonly onInput: (value: string) => void
  readonly onBlur?: () => void
  readonly hint?: ComponentChildren
  readonly error?: string | undefined
  readonly good?: string | undefined
  readonly placeholder?: string
  readonly class?: string
  readonly type?: 'text' | 'search' | 'email'
}

export const TextField = ({ label, value, onInput, onBlur, placeholder, type = 'text', ...field }: TextFieldProps) => (
  <Field label={label} {...field}>
    {attributes => (
      <input
        {...attributes}
        type={type}
        value={value}
        placeholder={placeholder}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={event => onInput(event.currentTarget.value)}
        onBlur={onBlur}
      />
    )}
  </Field>
)

interface ChoiceProps {
  readonly isChecked: boolean
  readonly onChange: (isChecked: boolean) => void
  readonly children: ComponentChildren
}

/** A checkbox with its sentence. */
export const Choice = ({ isChecked, onChange, children }: ChoiceProps) => (
  <label class="choice">
    <input type="checkbox" checked={isChecked} onChange={event => onChange(event.currentTarget.checked)} />
    {children}
  </label>
)

export interface SecretKeys {
  readonly objectStorageAccessKey: string
  readonly objectStorageSecretKey: string
}

interface SecretFieldsProps {
  readonly accessKey: RefObject<HTMLInputElement>
  readonly secretKey: RefObject<HTMLInputElement>
  readonly accessKeyError?: string | undefined
  readonly secretKeyError?: string | undefined
}

/**
 * The inputs of the object storage keys. Their text is only in the inputs, never in the state of a component: it goes with
 * the inputs.
 */
export const SecretFields = ({ accessKey, secretKey, accessKeyError, secretKeyError }: SecretFieldsProps) => (
  <>
    <Field label="Access key" error={accessKeyError}>
      {attributes => <input {...attributes} ref={accessKey} type="text" autocomplete="off" spellcheck={false} />}
    </Field>
    <Field label="Secret key" error={secretKeyError} hint="Sent to the service, and stored nowhere.">
      {attributes => <input {...attributes} ref={secretKey} type="password" autocomplete="off" spellcheck={false} />}
    </Field>
  </>
)

/** Reads the inputs and empties them. */
export const takeKeys = (
  accessKey: RefObject<HTMLInputElement>,
  secretKey: RefObject<HTMLInputElement>,
): SecretKeys => {
  const take = ({ current }: RefObject<HTMLInputElement>): string => {
    const text = current?.value.trim() ?? ''
    if (current) current.value = ''
    return text
  }
  return { objectStorageAccessKey: take(accessKey), objectStorageSecretKey: take(secretKey) }
}

/** Typing pauses this long before the service is asked. */
const SEARCH_PAUSE_MS = 120

interface SearchText {
  /** What the box shows. */
  readonly text: string
  readonly setText: (text: string) => void
  /** What has been typed so far. The caller writes it to the address, with something else that has changed. */
  readonly take: () => string
}

/**
 * The text of a search box whose address keeps it. `onPause` writes the text to the address when the typing pauses. The
 * address repeats that text a moment later, when more may have been typed: only a text from elsewhere replaces what is typed.
 */
export const useSearchText = (addressText: string, onPause: (text: string) => void): SearchText => {
  const [text, setText] = useState(addressText)
  const latest = useRef({ addressText, onPause })
  latest.current = { addressText, onPause }
  const sentText = useRef(addressText)
  const take = () => {
    sentText.current = text
    return text
  }
  // Only typing starts the pause.
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text !== latest.current.addressText) latest.current.onPause(take())
    }, SEARCH_PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  // The address changes without typing: back, a link, "clear". Before the pause of an earlier letter can end.
  useLayoutEffect(() => {
    if (addressText === sentText.current) return
    sentText.current = addressText
    setText(addressText)
  }, [addressText])
  return { text, setText, take }
}
