export type Verdict = { readonly kind: 'accepted' | 'rejected' | 'unavailable'; readonly message: string }
