import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ConfigIssue } from '@pool/runtime/service/env'

const certificatePattern = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

const isCertificate = (pem: string): boolean => {
  try {
    return new X509Certificate(pem).subject !== undefined
  } catch {
    return false
  }
}

/** The certificates of a PEM file, or null without a path. `variable` is the setting that names the file. */
export const readCaFile = (
  variable: string,
  path: string | null,
): { readonly ca: string | null } | { readonly issues: readonly ConfigIssue[] } => {
  const invalid = (detail: string) => ({ issues: [{ variable, detail }] })
  if (path === null) return { ca: null }
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    return invalid(`names a file that cannot be read (${code})`)
  }
  const certificates = text.match(certificatePattern) ?? []
  return certificates.length > 0 && certificates.every(isCertificate)
    ? { ca: certificates.join('\n') }
    : invalid('must name a PEM file of certificates (RFC 7468)')
}
