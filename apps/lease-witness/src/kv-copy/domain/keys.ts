import { parseSlot, type SlotAddress } from '../../lease/request.ts'

export const KEY_PREFIX = 'lease:'
/** Limit of Workers KV. */
const MAX_KEY_BYTES = 512

/** The key of a slot's copy in Workers KV. */
export const copyKey = (slot: string): string => `${KEY_PREFIX}${slot}`

const withLowerCaseEscapes = (encoded: string): string => encoded.replace(/%[0-9A-F]{2}/g, hex => hex.toLowerCase())

/** The keys under which a deployment that did not decode paths may have stored the slot, one per known client encoding. */
export const legacyKeys = ({ slot, encoded }: SlotAddress): string[] => {
  const whole = encodeURIComponent(slot)
  const bySegment = slot.split('/').map(encodeURIComponent).join('/')
  const names = new Set([encoded, whole, withLowerCaseEscapes(whole), bySegment, withLowerCaseEscapes(bySegment)])
  names.delete(slot)
  // Percent-encoded text is ASCII: one byte per character.
  return [...names].map(copyKey).filter(key => key.length <= MAX_KEY_BYTES)
}

/** The slot that a legacy key stands for. */
export const parseLegacyKey = (key: string): string | undefined => parseSlot(key.slice(KEY_PREFIX.length))?.slot
