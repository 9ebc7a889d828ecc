import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { createMiddleware } from 'hono/factory'
import { type HttpEnv, sendError } from './request.ts'
import { type StreamLimiter, sendFile } from './streams.ts'

const CONSOLE_PATH = '/console'

const compress = promisify(gzip)

/** The content types of a build. Files of other types are not served. */
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
}

/** These are compressed already. */
const COMPRESSED = new Set(['.png', '.ico', '.woff2'])

/** No inline script, no other host, no frame. A style that a script sets on an element is not inline. */
const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
}

/** The files whose names have a hash of their content. */
const ASSETS = 'assets/'

interface ConsoleFile {
  readonly type: string
  readonly content: Uint8Array
  /** Null: it is not worth it. */
  readonly gzipped: Uint8Array | null
  readonly etag: string
  /** Its name has a hash of its content. */
  readonly isImmutable: boolean
}

const loadFile = async (path: string, name: string): Promise<ConsoleFile> => {
  const content = await readFile(path)
  const extension = extname(name)
  return {
    type: TYPES[extension] ?? '',
    content,
    gzipped: COMPRESSED.has(extension) ? null : await compress(content),
    etag: `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`,
    isImmutable: name.startsWith(ASSETS),
  }
}

/** The files of a build by their path below /console. Empty if the folder does not exist. */
const loadFiles = async (folder: string): Promise<ReadonlyMap<string, ConsoleFile>> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = entries.filter(entry => entry.isFile() && extname(entry.name) in TYPES)
  return new Map(
    await Promise.all(
      files.map(async entry => {
        const path = join(entry.parentPath, entry.name)
        const name = relative(folder, path).split(sep).join('/')
        return [name, await loadFile(path, name)] as const
      }),
    ),
  )
}

export const isConsolePath = (path: string): boolean => path === CONSOLE_PATH || path.startsWith(`${CONSOLE_PATH}/`)

const NOT_INSTALLED = 'This installation has no console; docs/console.md says how to build it.'

/**
 * Serves the build of the console, from memory. Only files of the build have a path, so a path cannot leave the folder. Every
 * other path that is not that of a file is a page of the console.
 */
export const serveConsole = (folder: string, files: StreamLimiter) => {
  let loading: Promise<ReadonlyMap<string, ConsoleFile>> | undefined
  return createMiddleware<HttpEnv>(async (c, next) => {
    const { path, method } = c.req
    if (path === '/' && method === 'GET') return c.redirect(CONSOLE_PATH)
    if (!isConsolePath(path)) return next()
    for (const [name, value] of Object.entries(HEADERS)) c.header(name, value)
    if (method !== 'GET' && method !== 'HEAD') {
      c.header('Allow', 'GET, HEAD')
      return sendError(c, { kind: 'method-not-allowed' })
    }
    loading ??= loadFiles(folder)
    const loaded = await loading
    // The console may be built while the service runs.
    if (loaded.size === 0) loading = undefined
    const index = loaded.get('index.html')
    if (!index) return sendError(c, { kind: 'not-found', detail: NOT_INSTALLED })
    const name = path.slice(CONSOLE_PATH.length + 1)
    // A name can have a dot: /console/zones/pool.test.
    const isPage = !name.startsWith(ASSETS) && !(extname(name) in TYPES)
    const file = loaded.get(name) ?? (isPage ? index : undefined)
    if (!file) return sendError(c, { kind: 'not-found', detail: 'No such file.' })
    c.header('Cache-Control', file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache')
    c.header('ETag', file.etag)
    c.header('Vary', 'Accept-Encoding')
    if (c.req.header('If-None-Match') === file.etag) return c.body(null, 304)
    const acceptsGzip = /\bgzip\b/.test(c.req.header('Accept-Encoding') ?? '')
    if (!file.gzipped || !acceptsGzip) return sendFile(c, files, file.content, file.type)
    c.header('Content-Encoding', 'gzip')
    return sendFile(c, files, file.gzipped, file.type)
  })
}
