import type { Hono } from 'hono'
import type { HttpEnv } from './types.ts'

/** Which methods each mounted path has: what a 405 tells in `Allow` (RFC 9110 section 15.5.6). */
export const methodsByPath = (app: Hono<HttpEnv>): ((path: string) => string[]) => {
  const mounted = app.routes
    .filter(route => route.method !== 'ALL')
    .map(route => ({
      method: route.method,
      pattern: new RegExp(`^${route.path.replace(/[.]/g, '\\.').replace(/:[^/]+/g, '[^/]+')}$`),
    }))
  return path => {
    const methods = mounted.filter(route => route.pattern.test(path)).map(route => route.method)
    // Hono answers HEAD wherever there is a GET.
    return [...new Set(methods.includes('GET') ? [...methods, 'HEAD'] : methods)].sort()
  }
}
