import type { Spread } from '../statistics.ts'

/** Three significant digits, and no digit dropped from a whole number. */
export const figure = (value: number): string => {
  if (!Number.isFinite(value)) return '?'
  const size = Math.abs(value)
  const decimals = size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2
  return value.toFixed(decimals).replace(/\B(?=(\d{3})+(?!\d))/g, size >= 10_000 ? ' ' : '')
}

/** The median, and from where to where the rounds went. */
export const spread = ({ median, min, max }: Spread): string => `${figure(median)} (${figure(min)}–${figure(max)})`

/** Megabytes of a million bytes. */
export const megabytes = (bytes: number): string => `${figure(bytes / 1e6)} MB`
