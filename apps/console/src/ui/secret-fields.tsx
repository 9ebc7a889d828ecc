import type { RefObject } from 'preact'
import { Field } from './field.tsx'

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
      {attributes => <input {...attributes} ref={accessKey} type="password" autocomplete="off" spellcheck={false} />}
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
