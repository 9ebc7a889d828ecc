/**
 * What a provider says of credentials. `unavailable`: it said nothing of them; they may be good. `message` is for a
 * person, and is our own text: what a provider sends can hold anything, the credentials too.
 */
export interface Verdict {
  readonly kind: 'accepted' | 'rejected' | 'unavailable'
  readonly message: string
}

export const accepted = (message: string): Verdict => ({ kind: 'accepted', message })
export const rejected = (message: string): Verdict => ({ kind: 'rejected', message })
export const unavailable = (message: string): Verdict => ({ kind: 'unavailable', message })
