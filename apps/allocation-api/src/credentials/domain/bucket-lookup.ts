/**
 * A bucket as these credentials see it. `owned`: it is in their list of buckets. `foreign`: it exists, and is not in the list.
 * `unavailable`: the provider gave no answer about it; `message` is for users.
 */
export type BucketLookup =
  | { readonly kind: 'owned' | 'foreign' | 'absent' }
  | { readonly kind: 'unavailable'; readonly message: string }
