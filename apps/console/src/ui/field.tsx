import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

interface FieldProps {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly error?: string | undefined
  readonly good?: string | undefined
  readonly class?: string
  readonly children: (attributes: FieldAttributes) => ComponentChildren
}

/** What connects a control with its label and its texts. */
export interface FieldAttributes {
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
