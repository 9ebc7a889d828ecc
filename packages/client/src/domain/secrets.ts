/** Replaces a secret in the text of an error. */
const REDACTED = '<redacted>'

/** The fields and headers of requests that are secrets. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'reservationToken',
  'deploymentToken',
  'token',
  'accessKey',
  'secretKey',
  'objectStorageAccessKey',
  'objectStorageSecretKey',
  'Idempotency-Key',
  'X-Deployment-Token',
])

/** The secrets in the fields of a body or in headers. */
export const findSecrets = (body: unknown): readonly string[] =>
  typeof body === 'object' && body !== null
    ? Object.entries(body).flatMap(([name, value]) =>
        SECRET_FIELDS.has(name) && typeof value === 'string' && value !== '' ? [value] : [],
      )
    : []

/**
 * Replaces each secret in `text`, also as JSON and URLs spell it. What a proxy echoes can then be parsed and shown. Longer
 * secrets first: a shorter one may be a part of it.
 */
export const redactSecrets = (text: string, secrets: readonly string[]): string => {
  const spellings = secrets.flatMap(secret => [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])
  return [...new Set(spellings)]
    .filter(spelling => spelling !== '')
    .sort((a, b) => b.length - a.length)
    .reduce((rest, spelling) => rest.replaceAll(spelling, REDACTED), text)
}
