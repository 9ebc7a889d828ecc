import { isDnsLabel } from '@pool/contract'
import type { EnvReader } from '@pool/runtime/service/env'

export interface CredentialSettings {
  /** Maximum checks per minute and caller; also the size of a burst. */
  readonly attemptsPerMinute: number
  /** The https URL that a token check reads, by the name of the provider. */
  readonly tokenUrls: ReadonlyMap<string, string>
}

const ATTEMPTS_PER_MINUTE = 20
const VARIABLE = 'PROVIDER_TOKEN_URLS'
const DEFAULT_TOKEN_URL = 'hetzner=https://api.hetzner.cloud/v1/locations'

const isHttpsUrl = (text: string): boolean => {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && !url.username && !url.password && !url.hash
}

/** Items `name=https://…`, separated by commas or white space. URLs are case-sensitive, and no issue quotes one. */
const readTokenUrls = (env: EnvReader): ReadonlyMap<string, string> => {
  const listed = (env.text(VARIABLE) ?? '').split(/[\s,]+/).filter(Boolean)
  const items = listed.length > 0 ? listed : [DEFAULT_TOKEN_URL]
  const urls = new Map<string, string>()
  for (const [index, item] of items.entries()) {
    const [, name = '', url = ''] = /^([^=]*)=(.*)$/.exec(item) ?? []
    const provider = name.toLowerCase()
    if (!isDnsLabel(provider) || !isHttpsUrl(url)) {
      env.addIssue(VARIABLE, `item ${index + 1} must be name=https://host/path: a DNS label and a URL without a user`)
    } else if (urls.has(provider)) env.addIssue(VARIABLE, `lists ${provider} twice`)
    else urls.set(provider, url)
  }
  return urls
}

export const readCredentials = (env: EnvReader, attemptsPerMinute = ATTEMPTS_PER_MINUTE): CredentialSettings => ({
  attemptsPerMinute,
  tokenUrls: readTokenUrls(env),
})
