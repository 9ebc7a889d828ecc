import { homedir } from 'node:os'
import { join } from 'node:path'
import { callOperations, findOwnSegment } from '@pool/contract'
import { leaseOperations } from '@pool/contract/lease-operations'
import * as z from 'zod'
import { UsageError } from './exit-codes.ts'
import { readPrivateFile, writePrivateFile } from './private-file.ts'

/** Where a bearer token comes from. A token itself is never in the contexts file, an argument or the environment. */
const tokenSource = z.union([
  z.strictObject({ file: z.string().min(1) }),
  /** Run with `/bin/sh -c`; its standard output is the token. */
  z.strictObject({ command: z.string().min(1) }),
])
export type TokenSource = z.infer<typeof tokenSource>

const endpoint = z.strictObject({
  url: z.string(),
  token: tokenSource.optional(),
  /** Permits a token over http to another machine. */
  insecure: z.boolean().optional(),
})
/** The address of a service, and the source of its token. */
export type Endpoint = z.infer<typeof endpoint>

const context = z.strictObject({ api: endpoint.optional(), witness: endpoint.optional() })
/** The services of one installation. */
export type Context = z.infer<typeof context>

const CONTEXT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

const contextsFile = z.strictObject({
  current: z.string().optional(),
  contexts: z.record(z.string().regex(CONTEXT_NAME), context),
})
export type Contexts = z.infer<typeof contextsFile>

const EMPTY: Contexts = { contexts: {} }

/** The path of the contexts file: `POOLCTL_CONFIG`, or the place of the XDG Base Directory Specification. */
export const toContextsPath = (env: NodeJS.ProcessEnv): string =>
  env.POOLCTL_CONFIG?.trim() ||
  join(env.XDG_CONFIG_HOME?.trim() || join(env.HOME?.trim() || homedir(), '.config'), 'poolctl', 'contexts.json')

export const parseContextName = (name: string): string => {
  if (CONTEXT_NAME.test(name)) return name
  throw new UsageError(
    `context ${JSON.stringify(name)} is not a valid name; use 1 to 63 letters, digits, ".", "_" and "-".`,
  )
}

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host.endsWith('.localhost') || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host)

/** The canonical form of a service's address, without a trailing slash. */
export const parseServiceUrl = (text: string, what: string): string => {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`${what} must be an http or https URL such as https://pool.example.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new UsageError(`${what} must not have a user or a password; name a token file or a token command.`)
  }
  if (url.search !== '' || url.hash !== '') throw new UsageError(`${what} must not have a query or a fragment.`)
  return url.href.replace(/\/+$/, '')
}

/** Rejects an address that repeats the path of each request, and a token that would cross a network unencrypted. */
export const checkEndpoint = (
  service: 'api' | 'witness',
  { url, token, insecure }: Endpoint,
  what: string,
  hasToken = token !== undefined,
): void => {
  const { protocol, hostname, pathname } = new URL(url)
  const own = findOwnSegment(pathname, service === 'api' ? callOperations : leaseOperations)
  if (own !== undefined) throw new UsageError(`${what} must have no /${own} in its path: poolctl adds it.`)
  if (!hasToken || insecure || protocol === 'https:' || isLoopback(hostname)) return
  throw new UsageError(
    `${what} would send its token unencrypted to ${hostname}; use https, or add --insecure to the context if the network is trusted.`,
  )
}

export const readContexts = async (path: string): Promise<Contexts> => {
  const text = await readPrivateFile(path, 'the contexts file')
  if (text === null) return EMPTY
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new UsageError(`the contexts file ${path} is not JSON; correct it, or move it away.`)
  }
  const parsed = contextsFile.safeParse(value)
  if (parsed.success) return parsed.data
  const at = parsed.error.issues[0]?.path.join('.') || 'the top level'
  throw new UsageError(`the contexts file ${path} is invalid at ${at}; correct it, or run: poolctl contexts set`)
}

export const writeContexts = (path: string, contexts: Contexts): Promise<void> =>
  writePrivateFile(path, `${JSON.stringify(contexts, null, 2)}\n`)

export interface SelectedContext {
  readonly name: string
  readonly context: Context
}

/** The context that was requested, or the current one. */
export const selectContext = (contexts: Contexts, requested: string | undefined): SelectedContext => {
  const name = requested ?? contexts.current
  if (name === undefined) {
    throw new UsageError('there is no current context; run: poolctl contexts set NAME --api URL')
  }
  const context = Object.hasOwn(contexts.contexts, name) ? contexts.contexts[name] : undefined
  if (context) return { name, context }
  const known = Object.keys(contexts.contexts).sort()
  throw new UsageError(
    known.length === 0
      ? `there is no context ${JSON.stringify(name)}; run: poolctl contexts set ${name} --api URL`
      : `there is no context ${JSON.stringify(name)}; use one of ${known.join(', ')}.`,
  )
}
