import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ConfigIssue } from '../config/env.ts'

const certificate = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

const isCertificate = (pem: string): boolean => {
  try {
    return new X509Certificate(pem).subject !== undefined
  } catch {
    return false
  }
}

/** The certificates of a PEM file; null: there is none to read. The fault is that of `variable`, which names the file. */
export const readCaFile = (
  variable: string,
  path: string | null,
): { readonly ca: string | null } | { readonly issues: readonly ConfigIssue[] } => {
  const refuse = (detail: string) => ({ issues: [{ variable, detail }] })
  if (path === null) return { ca: null }
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    return refuse(`names a file that cannot be read (${code})`)
  }
  const certificates = text.match(certificate) ?? []
  return certificates.length > 0 && certificates.every(isCertificate)
    ? { ca: certificates.join('\n') }
    : refuse('must name a PEM file of certificates (RFC 7468)')
}
