/** What the sender of a write says that it last saw. */
export type WritePrecondition =
  | { readonly kind: 'generation'; readonly generation: number }
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid'; readonly header: 'If-Match' | 'If-None-Match' }

/** `7`, `"7"` or `W/"7"`; a bare number is no entity tag of RFC 9110, but clients of this wire send it. */
const generationTag = /^(?:(0|[1-9]\d{0,15})|(?:W\/)?"(0|[1-9]\d{0,15})")$/

const generationOf = (tag: string): number | undefined => {
  const [, bare, quoted] = generationTag.exec(tag) ?? []
  const generation = Number(bare ?? quoted)
  return Number.isSafeInteger(generation) ? generation : undefined
}

/**
 * `If-Match` as a generation. Where it may create (PUT), `If-None-Match: *` says the same as `If-Match: 0`; a second
 * header that says something else is refused, for a precondition must not be dropped in silence.
 */
export const writePrecondition = (
  ifMatch: string | undefined,
  ifNoneMatch: string | undefined,
  { mayCreate }: { readonly mayCreate: boolean },
): WritePrecondition => {
  if (ifMatch === undefined && (ifNoneMatch === undefined || !mayCreate)) return { kind: 'missing' }
  const generation = ifMatch === undefined ? 0 : generationOf(ifMatch.trim())
  if (generation === undefined) return { kind: 'invalid', header: 'If-Match' }
  const isConsistent = ifNoneMatch === undefined || (mayCreate && ifNoneMatch.trim() === '*' && generation === 0)
  return isConsistent ? { kind: 'generation', generation } : { kind: 'invalid', header: 'If-None-Match' }
}

/** The generations that a reader has already; `any`: whichever there is. Plain data, for it crosses into the object. */
export type Known = 'any' | readonly number[]

/** `If-None-Match` of a read (RFC 9110 section 13.1.2). What is no generation of ours matches none. */
export const knownGenerations = (ifNoneMatch: string | undefined): Known => {
  if (ifNoneMatch === undefined) return []
  if (ifNoneMatch.trim() === '*') return 'any'
  return ifNoneMatch
    .split(',')
    .map(tag => generationOf(tag.trim()))
    .filter(generation => generation !== undefined)
}

export const isKnown = (known: Known, generation: number): boolean => known === 'any' || known.includes(generation)
