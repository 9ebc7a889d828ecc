import { isDnsLabel, isHostName, objectStorageRegions } from '@pool/contract'
import type { EnvReader } from '@pool/runtime/service/env'
import { toBucketName } from '../naming/naming.ts'

export interface ObjectStorageSettings {
  /** Its name in the field `providers` of a deployment, and in the name of the cluster's secret. */
  readonly provider: string
  /** The parent domain of the region hosts, with `:port` if the port is not 443. */
  readonly domain: string
  /** The prefix of every bucket name. */
  readonly platformPrefix: string
}

/** A prefix is valid if a bucket name can be derived for a short FQDN. */
const SHORT_FQDN = 'a.io'

const readDomain = (env: EnvReader): string => {
  const domain = (env.text('OBJECT_STORAGE_DOMAIN') ?? 'your-objectstorage.com').toLowerCase()
  const [, host = '', port = '443'] = /^([^:]*)(?::(\d{1,5}))?$/.exec(domain) ?? []
  const isValid = objectStorageRegions.every(region => isHostName(`${region}.${host}`))
  if (!isValid || Number(port) < 1 || Number(port) > 65_535) {
    env.addIssue('OBJECT_STORAGE_DOMAIN', 'must be a host name such as your-objectstorage.com, optionally with :port')
  }
  return domain
}

const readPrefix = (env: EnvReader): string => {
  const prefix = env.text('PDM_PLATFORM_PREFIX') ?? 'catalyst'
  // The rejection's own reason mentions a deployment, so the issue needs another text.
  if (toBucketName(prefix, SHORT_FQDN).kind === 'invalid') {
    env.addIssue(
      'PDM_PLATFORM_PREFIX',
      'must be a prefix for bucket names: 1 to 58 characters a-z, 0-9 and "-", beginning with a letter or digit, and not reserved by S3',
    )
  }
  return prefix
}

export const readObjectStorage = (env: EnvReader): ObjectStorageSettings => {
  const provider = (env.text('OBJECT_STORAGE_PROVIDER') ?? 'hetzner').toLowerCase()
  if (!isDnsLabel(provider)) {
    env.addIssue('OBJECT_STORAGE_PROVIDER', 'must be a DNS label: 1 to 63 characters a-z, 0-9 and "-", such as hetzner')
  }
  return {
    provider,
    domain: readDomain(env),
    platformPrefix: readPrefix(env),
  }
}
