import { isDnsLabel } from '@pool/contract'
import type { EnvReader } from './env.ts'

export interface CredentialSettings {
  /** Checks a minute that each caller may make, and as many at once. */
  readonly attemptsPerMinute: number
  /** What is read to check a token, by the provider's name; https. */
  readonly tokenUrls: ReadonlyMap<string, string>
}

const VARIABLE = 'PROVIDER_TOKEN_URLS'

const isHttpsUrl = (text: string): boolean => {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && !url.username && !url.password && !url.hash
}

/** `name=https://…`, several between commas or white space. The case of a URL counts, and none is quoted in a fault. */
const readTokenUrls = (read: EnvReader): ReadonlyMap<string, string> => {
  const items = (read.text(VARIABLE) ?? '').split(/[\s,]+/).filter(Boolean)
  const urls = new Map<string, string>()
  for (const [index, item] of (items.length > 0
    ? items
    : ['hetzner=https://api.hetzner.cloud/v1/locations']
  ).entries()) {
    const [, name = '', url = ''] = /^([^=]*)=(.*)$/.exec(item) ?? []
    const provider = name.toLowerCase()
    if (!isDnsLabel(provider) || !isHttpsUrl(url)) {
      read.fault(VARIABLE, `item ${index + 1} must be name=https://host/path: a DNS label and a URL without a user`)
    } else if (urls.has(provider)) read.fault(VARIABLE, `names ${provider} twice`)
    else urls.set(provider, url)
  }
  return urls
}

export const readCredentials = (read: EnvReader): CredentialSettings => ({
  attemptsPerMinute: read.whole('PDM_VALIDATION_ATTEMPTS', 20, { min: 1, max: 10_000 }),
  tokenUrls: readTokenUrls(read),
})
