/** What Postgres takes as text: no U+0000, and no half of a surrogate pair (RFC 3629 section 3). */
export const storableText = (text: string): string => text.replaceAll('\0', '').toWellFormed()

/** A value of JSON with every text and name in it storable. Terraform allows U+0000 in both. */
export const storable = (value: unknown): unknown => {
  if (typeof value === 'string') return storableText(value)
  if (Array.isArray(value)) return value.map(storable)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [storableText(name), storable(each)]))
}
