/**
 * What a provider's response means for the credentials. `unavailable`: it means nothing for them. `message` is for
 * users and is always our own text, as a provider's response may quote the credentials.
 */
export interface CheckResult {
  readonly kind: 'accepted' | 'rejected' | 'unavailable'
  readonly message: string
}

export const accepted = (message: string): CheckResult => ({ kind: 'accepted', message })
export const rejected = (message: string): CheckResult => ({ kind: 'rejected', message })
export const unavailable = (message: string): CheckResult => ({ kind: 'unavailable', message })
