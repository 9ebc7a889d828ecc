import type { ConfigIssue, Env } from './env.ts'

/** A proxy can be written without its scheme, as for curl and Go. */
export const toProxyUrl = (text: string): string => (text.includes('://') ? text : `http://${text}`)

const SCHEME = /^(?:https?|socks5h?):$/
/** A host, a domain, an address, a network or a range, perhaps with a port; or every host. */
const EXCEPTION = /^(?:\*|[\w.:%/[\]*-]+)$/

const isProxy = (text: string, isHttpOnly: boolean): boolean => {
  const url = /[\s"'<>]/.test(text) ? null : URL.parse(toProxyUrl(text))
  if (!url || !SCHEME.test(url.protocol) || url.hostname === '') return false
  return !isHttpOnly || !url.protocol.startsWith('socks')
}

const PROXY_DETAIL = 'must be the URL of a proxy, such as http://proxy.example:3128'
const LIST_DETAIL =
  'must list hosts, domains and addresses, separated by commas, such as localhost,.example.com,192.0.2.1'

const findFault = (name: string, text: string): string | null => {
  if (name === 'NO_PROXY') {
    const items = text.split(',').map(item => item.trim())
    return items.every(item => item === '' || (EXCEPTION.test(item) && !item.includes('://'))) ? null : LIST_DETAIL
  }
  const isSetting = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'].includes(name) && text !== ''
  return isSetting && !isProxy(text, name === 'HTTPS_PROXY') ? PROXY_DETAIL : null
}

/**
 * What is wrong with the variables of proxies, in upper or in lower case. Each program of an installation takes them from the
 * environment, and some fail at their first request only. No issue quotes a value, because it may hold a password.
 */
export const findProxyIssues = (env: Env): readonly ConfigIssue[] =>
  Object.entries(env).flatMap(([variable, value = '']) => {
    const name = variable === variable.toLowerCase() ? variable.toUpperCase() : variable
    const detail = findFault(name, value.trim())
    return detail === null ? [] : [{ variable, detail }]
  })
