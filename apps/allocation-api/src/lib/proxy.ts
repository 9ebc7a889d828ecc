import { setGlobalProxyFromEnv } from 'node:http'

type ProxyVariables = Readonly<Record<string, string | undefined>>

/** A proxy can be written without its scheme, as for curl and Go. */
const toUrl = (text: string): string => (text.includes('://') ? text : `http://${text}`)

/**
 * The proxy of requests over HTTPS, in the form of Node's `proxyEnv`. HTTP_PROXY is not part of it: requests without TLS go
 * to servers of the installation, such as PowerDNS.
 */
export const toProxyEnv = (env: ProxyVariables): NodeJS.ProcessEnv => {
  const proxy = env.HTTPS_PROXY || env.https_proxy
  const exceptions = env.NO_PROXY || env.no_proxy
  if (!proxy) return {}
  return { HTTPS_PROXY: toUrl(proxy), ...(exceptions && { NO_PROXY: exceptions }) }
}

/** For every agent of this process that is not the global one. */
export const proxyEnv: NodeJS.ProcessEnv = {}

/**
 * Makes `fetch` and all later agents of this process use the proxy. Call it first, with the environment of the process. Throws
 * if the proxy is not a URL.
 */
export const useProxy = (env: NodeJS.ProcessEnv): void => {
  Object.assign(proxyEnv, toProxyEnv(env))
  if (!proxyEnv.HTTPS_PROXY) return
  // `fetch` takes what is not given to it from the environment, when it is configured.
  const plain = Object.entries(env).filter(([name]) => name.toUpperCase() === 'HTTP_PROXY')
  for (const [name] of plain) delete env[name]
  setGlobalProxyFromEnv(proxyEnv)
  Object.assign(env, Object.fromEntries(plain))
}
