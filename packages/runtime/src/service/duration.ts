/** Milliseconds per unit of Go's `time.ParseDuration`, whose syntax the environment uses. */
const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  '\u00b5s': 1e-3, // MICRO SIGN
  '\u03bcs': 1e-3, // GREEK SMALL LETTER MU
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}

/** Milliseconds of `90s`, `10m`, `1h30m`, `+1.5h` or `0`; null if the text is not a duration, or a negative one. */
export const parseDuration = (text: string): number | null => {
  const unsigned = text.replace(/^\+/, '')
  if (unsigned === '0') return 0
  const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/y
  let total = 0
  while (part.lastIndex < unsigned.length) {
    const match = part.exec(unsigned)
    if (!match) return null
    total += Number(match[1]) * (unitMs[match[2] ?? ''] ?? Number.NaN)
  }
  return unsigned === '' ? null : total
}
