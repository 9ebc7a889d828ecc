/** Milliseconds of each unit of Go's `time.ParseDuration`, whose syntax the environment uses. */
const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}

/** `90s`, `10m`, `1h30m`, `1.5h` in milliseconds; null when it is no unsigned duration. A number alone has no unit. */
export const parseDuration = (text: string): number | null => {
  const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/y
  let total = 0
  while (part.lastIndex < text.length) {
    const match = part.exec(text)
    if (!match) return null
    total += Number(match[1]) * (unitMs[match[2] ?? ''] ?? Number.NaN)
  }
  return text === '' ? null : total
}
