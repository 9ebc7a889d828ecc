import { setGlobalProxyFromEnv } from 'node:http'
import type { Env } from '@pool/runtime/service/env'
import { findProxyIssues, toProxyUrl } from '@pool/runtime/service/proxy-issues'

/**
 * The proxy of requests over HTTPS, in the form of Node's `proxyEnv`. HTTP_PROXY is not part of it: requests without TLS go
 * to servers of the installation, such as PowerDNS.
 */
export const toProxyEnv = (env: Env): NodeJS.ProcessEnv => {
  const proxy = env.HTTPS_PROXY?.trim() || env.https_proxy?.trim()
  const exceptions = env.NO_PROXY || env.no_proxy
  if (!proxy) return {}
  return { HTTPS_PROXY: toProxyUrl(proxy), ...(exceptions && { NO_PROXY: exceptions }) }
}

/** For every agent of this process that is not the global one. */
export const proxyEnv: NodeJS.ProcessEnv = {}

/**
 * Makes `fetch` and all later agents of this process use the proxy. Call it first, with the environment of the process. Does
 * nothing if a variable is invalid, which the configuration then reports.
 */
export const useProxy = (env: NodeJS.ProcessEnv): void => {
  if (findProxyIssues(env).length > 0) return
  Object.assign(proxyEnv, toProxyEnv(env))
  if (!proxyEnv.HTTPS_PROXY) return
  // `fetch` takes what is not given to it from the environment, when it is configured.
  const plain = Object.entries(env).filter(([name]) => name.toUpperCase() === 'HTTP_PROXY')
  for (const [name] of plain) delete env[name]
  setGlobalProxyFromEnv(proxyEnv)
  Object.assign(env, Object.fromEntries(plain))
}
