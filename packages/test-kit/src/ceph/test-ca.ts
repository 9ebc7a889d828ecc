// Required by the dependency injection of @peculiar/x509.
import 'reflect-metadata'
import { randomBytes } from 'node:crypto'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' }
const SIGNATURE = { name: 'ECDSA', hash: 'SHA-256' }
const DAY_MS = 86_400_000

export interface CertificateRequest {
  /** DNS names, wildcards allowed; may be none. RFC 6125: a wildcard stands for one label. */
  readonly names: readonly string[]
  /** IP addresses as text. */
  readonly addresses?: readonly string[]
  /** Default: one day ago, because clocks may differ. */
  readonly notBefore?: Date
  /** Default: in one day. A time in the past creates an expired certificate. */
  readonly notAfter?: Date
}

export interface KeyAndCertificate {
  /** PKCS #8, PEM. */
  readonly key: string
  /** PEM. */
  readonly cert: string
}

export interface TestCa {
  /** The root certificate, PEM. */
  readonly cert: string
  readonly issue: (request: CertificateRequest) => Promise<KeyAndCertificate>
}

const newKeys = () => crypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify'])
// RFC 5280, 4.1.2.2: positive, at most 20 octets.
const newSerial = () => `01${randomBytes(15).toString('hex')}`
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS)

/** A CA whose key is only in the memory of this process. */
export const createCa = async (name = 'test CA'): Promise<TestCa> => {
  const issuer = `CN=${name}`
  const keys = await newKeys()
  const root = await X509CertificateGenerator.createSelfSigned({
    name: issuer,
    keys,
    signingAlgorithm: SIGNATURE,
    serialNumber: newSerial(),
    notBefore: inDays(-3650),
    notAfter: inDays(3650),
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  })

  const issue = async (request: CertificateRequest): Promise<KeyAndCertificate> => {
    const own = await newKeys()
    const names = [
      ...request.names.map(value => ({ type: 'dns' as const, value })),
      ...(request.addresses ?? []).map(value => ({ type: 'ip' as const, value })),
    ]
    const certificate = await X509CertificateGenerator.create({
      subject: 'CN=test server',
      issuer,
      publicKey: own.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: SIGNATURE,
      serialNumber: newSerial(),
      notBefore: request.notBefore ?? inDays(-1),
      notAfter: request.notAfter ?? inDays(1),
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
        ...(names.length > 0 ? [new SubjectAlternativeNameExtension(names)] : []),
      ],
    })
    const key = await crypto.subtle.exportKey('pkcs8', own.privateKey)
    return { key: PemConverter.encode(key, 'PRIVATE KEY'), cert: certificate.toString('pem') }
  }
  return { cert: root.toString('pem'), issue }
}
