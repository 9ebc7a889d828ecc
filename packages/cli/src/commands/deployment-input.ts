import type { FlagSpec, Flags } from '../command.ts'
import { UsageError } from '../exit-codes.ts'
import { readPrivateFile, readUserFile } from '../private-file.ts'
import type { Session } from '../session.ts'
import { keysFileFlag, readStorageKeys } from './credentials.ts'
import { toText, toTexts } from './flags.ts'

/** The fields of a deployment request, as the contract names them. The service validates them, all at once. */
export type DeploymentInput = Readonly<Record<string, unknown>>

const SECRET_FIELDS = ['objectStorageAccessKey', 'objectStorageSecretKey'] as const

/** The flags with one text, and their fields. */
const TEXT_FLAGS: Readonly<Record<string, string>> = {
  orgName: 'orgName',
  orgEmail: 'orgEmail',
  pool: 'sovereignPoolDomain',
  subdomain: 'sovereignSubdomain',
  fqdn: 'sovereignFQDN',
  region: 'region',
  storageRegion: 'objectStorageRegion',
}

export const inputFlags: readonly FlagSpec[] = [
  {
    flags: '-f, --file <file>',
    description: 'a JSON file with the fields of the API; flags take precedence',
    suggest: 'files',
  },
  { flags: '--org-name <name>', description: 'the name of the tenant' },
  { flags: '--org-email <address>', description: 'the mail address of the tenant' },
  { flags: '--provider <name>', description: 'a provider; repeat it for several', isRepeatable: true },
  { flags: '--region <region>', description: 'the region of the provider' },
  { flags: '--ssh-public-key <file>', description: 'a file such as ~/.ssh/id_ed25519.pub', suggest: 'files' },
  { flags: '--storage-region <region>', description: 'the region of the object storage' },
  { flags: '--adopt-bucket', description: 'use a bucket that exists, with its content; the keys must own it' },
  keysFileFlag,
]

export const nameFlags: readonly FlagSpec[] = [
  { flags: '--pool <pool>', description: 'the pool of the name', suggest: 'pools' },
  { flags: '--subdomain <label>', description: 'the name in the pool' },
  { flags: '--fqdn <domain>', description: 'a domain of the tenant, instead of --pool and --subdomain' },
]

const parseInputFile = (text: string, file: string): Record<string, unknown> => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new UsageError(`${file} is not JSON; correct it.`)
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new UsageError(`${file} must be a JSON object with the fields of a deployment.`)
}

/** A file with keys must be readable by the user only. */
const readInputFile = async (file: string): Promise<Record<string, unknown>> => {
  const fields = parseInputFile(await readUserFile(file, 'the input file'), file)
  if (SECRET_FIELDS.some(name => name in fields)) await readPrivateFile(file, 'the input file with keys')
  return fields
}

/** The fields of the file and of the flags, without keys that are not in the file. */
export const readInput = async (flags: Flags): Promise<Record<string, unknown>> => {
  const file = toText(flags.file)
  const fields = file === undefined ? {} : await readInputFile(file)
  for (const [flag, field] of Object.entries(TEXT_FLAGS)) {
    const text = toText(flags[flag])
    if (text !== undefined) fields[field] = text
  }
  const providers = toTexts(flags.provider)
  if (providers.length > 0) fields.providers = providers
  if (flags.adoptBucket === true) fields.adoptBucket = true
  const sshFile = toText(flags.sshPublicKey)
  if (sshFile !== undefined) fields.sshPublicKey = (await readUserFile(sshFile, 'the public key')).trim()
  const key = fields.sshPublicKey
  // The service would also reject it, but then the key would have left this machine. A public key is one line.
  if (typeof key === 'string' && /PRIVATE|\n/.test(key.trim())) {
    throw new UsageError(
      `${sshFile ?? 'sshPublicKey'} is a private key; name the public key, a .pub file. Nothing was sent.`,
    )
  }
  return fields
}

/** The fields of the keys, from `--keys-file` or a prompt. */
export const askKeys = async (session: Session, flags: Flags): Promise<Readonly<Record<string, string>>> => {
  const { accessKey, secretKey } = await readStorageKeys(session, toText(flags.keysFile))
  return { objectStorageAccessKey: accessKey, objectStorageSecretKey: secretKey }
}

export const hasKeys = (fields: DeploymentInput): boolean => SECRET_FIELDS.every(name => name in fields)

/** The fields without the keys: what identifies a request. */
export const withoutKeys = (fields: DeploymentInput): DeploymentInput =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !SECRET_FIELDS.some(secret => secret === name)))
