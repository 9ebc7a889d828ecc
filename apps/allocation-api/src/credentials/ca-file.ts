import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { EnvReader } from '@pool/runtime/service/env'

const certificatePattern = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

const isCertificate = (pem: string): boolean => {
  try {
    return new X509Certificate(pem).subject !== undefined
  } catch {
    return false
  }
}

const VARIABLE = 'OBJECT_STORAGE_CA_FILE'

/** The certificates of the PEM file for object storage; null without one. */
export const readCaFile = (env: EnvReader): string | null => {
  const path = env.text(VARIABLE)
  if (path === undefined) return null
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    env.addIssue(VARIABLE, `names a file that cannot be read (${code})`)
    return null
  }
  const certificates = text.match(certificatePattern) ?? []
  if (certificates.length > 0 && certificates.every(isCertificate)) return certificates.join('\n')
  env.addIssue(VARIABLE, 'must name a PEM file of certificates (RFC 7468)')
  return null
}
