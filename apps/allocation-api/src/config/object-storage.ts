import { isDnsLabel, isHostName, objectStorageRegions } from '@pool/contract'
import { toBucketName } from '../naming/bucket-name.ts'
import type { EnvReader } from './env.ts'

export interface ObjectStorageSettings {
  /** Its name in `providers` and in the name of the cluster's secret. */
  readonly provider: string
  /** Host name below which each region is, with `:port` when it is not 443. */
  readonly domain: string
  /** A PEM file of certificate authorities to be trusted besides the system's; null: none. */
  readonly caFile: string | null
  /** What the name of every bucket begins with. */
  readonly platformPrefix: string
}

/** As short as an FQDN gets in practice. */
const SHORT_FQDN = 'a.io'

const readDomain = (read: EnvReader): string => {
  const domain = (read.text('OBJECT_STORAGE_DOMAIN') ?? 'your-objectstorage.com').toLowerCase()
  const [, host = '', port = '443'] = /^([^:]*)(?::(\d{1,5}))?$/.exec(domain) ?? []
  const isGood = objectStorageRegions.every(region => isHostName(`${region}.${host}`))
  if (!isGood || Number(port) < 1 || Number(port) > 65_535) {
    read.fault('OBJECT_STORAGE_DOMAIN', 'must be a host name such as your-objectstorage.com, or that with :port')
  }
  return domain
}

const readPrefix = (read: EnvReader): string => {
  const prefix = read.text('PDM_PLATFORM_PREFIX') ?? 'catalyst'
  // The rule's own reasons speak of a deployment, of which there is none yet.
  if (toBucketName(prefix, SHORT_FQDN).kind === 'refused') {
    read.fault(
      'PDM_PLATFORM_PREFIX',
      'must be the beginning of a bucket name: 1 to 58 characters a-z, 0-9 and "-", first a letter or digit, and not one that S3 reserves',
    )
  }
  return prefix
}

export const readObjectStorage = (read: EnvReader): ObjectStorageSettings => {
  const provider = (read.text('OBJECT_STORAGE_PROVIDER') ?? 'hetzner').toLowerCase()
  if (!isDnsLabel(provider)) {
    read.fault('OBJECT_STORAGE_PROVIDER', 'must be a DNS label: 1 to 63 characters a-z, 0-9 and "-", such as hetzner')
  }
  return {
    provider,
    domain: readDomain(read),
    caFile: read.text('OBJECT_STORAGE_CA_FILE') ?? null,
    platformPrefix: readPrefix(read),
  }
}
