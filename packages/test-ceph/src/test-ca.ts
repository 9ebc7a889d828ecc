// What the next import's dependency injection asks for, and does not bring.
import 'reflect-metadata'
import { randomBytes, webcrypto } from 'node:crypto'
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

const KEYS = { name: 'ECDSA', namedCurve: 'P-256' }
const SIGNED = { name: 'ECDSA', hash: 'SHA-256' }
const DAY_MS = 86_400_000

export interface CertificateWish {
  /** DNS names, wildcards allowed; may be none. RFC 6125: a wildcard stands for one label. */
  readonly names: readonly string[]
  /** IP addresses in their usual text. */
  readonly addresses?: readonly string[]
  /** From a day ago if not given: the clocks of the two ends may differ. */
  readonly notBefore?: Date
  /** In a day if not given; a past time makes an expired certificate. */
  readonly notAfter?: Date
}

export interface KeyAndCertificate {
  /** PKCS #8, PEM. */
  readonly key: string
  /** PEM. */
  readonly cert: string
}

export interface TestCa {
  /** What a client trusts: PEM. */
  readonly cert: string
  readonly issue: (wish: CertificateWish) => Promise<KeyAndCertificate>
}

const newKeys = () => webcrypto.subtle.generateKey(KEYS, true, ['sign', 'verify'])
// RFC 5280, 4.1.2.2: positive, at most 20 octets.
const newSerial = () => `01${randomBytes(15).toString('hex')}`
const inDays = (days: number) => new Date(Date.now() + days * DAY_MS)

/** An authority whose key lives in this process alone. Two of them do not trust each other, whatever their names. */
export const makeCa = async (name = 'test CA'): Promise<TestCa> => {
  const issuer = `CN=${name}`
  const keys = await newKeys()
  const root = await X509CertificateGenerator.createSelfSigned({
    name: issuer,
    keys,
    signingAlgorithm: SIGNED,
    serialNumber: newSerial(),
    notBefore: inDays(-3650),
    notAfter: inDays(3650),
    extensions: [
      new BasicConstraintsExtension(true, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  })

  const issue = async (wish: CertificateWish): Promise<KeyAndCertificate> => {
    const own = await newKeys()
    const names = [
      ...wish.names.map(value => ({ type: 'dns' as const, value })),
      ...(wish.addresses ?? []).map(value => ({ type: 'ip' as const, value })),
    ]
    const certificate = await X509CertificateGenerator.create({
      subject: 'CN=test server',
      issuer,
      publicKey: own.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: SIGNED,
      serialNumber: newSerial(),
      notBefore: wish.notBefore ?? inDays(-1),
      notAfter: wish.notAfter ?? inDays(1),
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        ...(names.length > 0 ? [new SubjectAlternativeNameExtension(names)] : []),
      ],
    })
    const key = await webcrypto.subtle.exportKey('pkcs8', own.privateKey)
    return { key: PemConverter.encode(key, 'PRIVATE KEY'), cert: certificate.toString('pem') }
  }
  return { cert: root.toString('pem'), issue }
}
