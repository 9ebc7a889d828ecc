import { slot as slotSchema } from '@pool/contract/lease'

/** A slot, and how the request spelled it: an older deployment may have kept its record under that spelling. */
export interface SlotAddress {
  readonly slot: string
  readonly spelling: string
}

/** `spelling` is the path behind the resource's prefix; decoded once, so that `ns/name` and `ns%2Fname` are one slot. */
export const slotAddress = (spelling: string): SlotAddress | undefined => {
  try {
    const parsed = slotSchema.safeParse(decodeURIComponent(spelling))
    return parsed.success ? { slot: parsed.data, spelling } : undefined
  } catch {
    return undefined
  }
}

export const KEY_PREFIX = 'lease:'
const KEY_MAX_BYTES = 512

/** The key of a slot's copy in Workers KV. */
export const copyKey = (slot: string): string => `${KEY_PREFIX}${slot}`

const smallHex = (encoded: string): string => encoded.replace(/%[0-9A-F]{2}/g, hex => hex.toLowerCase())

/** Where a deployment that did not decode paths may have kept the slot: the spellings that clients are known to use. */
export const olderKeys = ({ slot, spelling }: SlotAddress): string[] => {
  const whole = encodeURIComponent(slot)
  const bySegment = slot.split('/').map(encodeURIComponent).join('/')
  const spellings = new Set([spelling, whole, smallHex(whole), bySegment, smallHex(bySegment)])
  spellings.delete(slot)
  // Percent-encoded text is ASCII: a character is a byte.
  return [...spellings].map(copyKey).filter(key => key.length <= KEY_MAX_BYTES)
}

/** The slot that an older deployment meant by a key. */
export const slotOfOlderKey = (key: string): string | undefined => slotAddress(key.slice(KEY_PREFIX.length))?.slot
