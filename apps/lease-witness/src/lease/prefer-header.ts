/** Seconds. Longer wishes are cut to it. */
export const LONGEST_WAIT = 60

/** Characters. No sensible preference is longer, and reading one takes time that grows with its square. */
const LONGEST_HEADER = 512

/** A list member: a quoted string may hold commas (RFC 7240 section 2, RFC 9110 section 5.6). */
const member = /(?:[^",]|"(?:[^"\\]|\\.)*")+/g
const waitPreference = /^\s*wait\s*=\s*(?:"(\d{1,9})"|(\d{1,9}))\s*(?:;.*)?$/is

/**
 * The seconds of the first `wait` in `Prefer` (RFC 7240 section 4.3), 60 at most; 0: none that can be honoured, and a
 * preference that cannot be honoured is ignored (section 2).
 */
export const waitSeconds = (prefer: string | undefined): number => {
  if (prefer === undefined || prefer.length > LONGEST_HEADER) return 0
  const first = prefer.match(member)?.find(text => /^\s*wait\s*(?:[=;]|$)/i.test(text))
  const [, quoted, bare] = waitPreference.exec(first ?? '') ?? []
  return Math.min(Number(quoted ?? bare ?? 0), LONGEST_WAIT)
}
