/**
 * What a provider's response means for the credentials. `unavailable`: it means nothing for them. `message` is for
 * users and is always our own text, as a provider's response may quote the credentials.
 */
export interface CredentialCheckResult {
  readonly kind: 'accepted' | 'rejected' | 'unavailable'
  readonly message: string
}

export const acceptedResult = (message: string): CredentialCheckResult => ({ kind: 'accepted', message })
export const rejectedResult = (message: string): CredentialCheckResult => ({ kind: 'rejected', message })
export const unavailableResult = (message: string): CredentialCheckResult => ({ kind: 'unavailable', message })
