/** Replaces what Postgres rejects in text: removes U+0000 and replaces lone surrogates (RFC 3629 section 3). */
export const sanitizeText = (text: string): string => text.replaceAll('\0', '').toWellFormed()

/** Sanitizes every string and property name of a JSON value. Terraform allows U+0000 in both. */
export const sanitizeJson = (value: unknown): unknown => {
  if (typeof value === 'string') return sanitizeText(value)
  if (Array.isArray(value)) return value.map(sanitizeJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [sanitizeText(name), sanitizeJson(each)]))
}
