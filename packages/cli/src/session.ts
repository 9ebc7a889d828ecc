import { AllocationClient, type CallOptions, type ClientOptions, LeaseClient } from '@pool/client'
import {
  checkEndpoint,
  type Endpoint,
  readContexts,
  type SelectedContext,
  selectContext,
  toContextsPath,
} from './contexts.ts'
import { UsageError } from './exit-codes.ts'
import type { Host } from './host.ts'
import type { Output, OutputFormat } from './output.ts'
import type { Progress } from './progress.ts'
import { promptConfirmation, promptSecret } from './prompt.ts'
import { createTokenStore, readToken, type TokenStore, toStateFolder } from './token-store.ts'

/** The flags that every command has. */
export interface GlobalFlags {
  readonly context?: string
  readonly output?: OutputFormat
  readonly timeout?: string
  readonly verbose?: boolean
  readonly quiet?: boolean
  readonly color?: boolean
}

/** What a command works with. */
export interface Session {
  readonly host: Host
  readonly globals: GlobalFlags
  readonly output: Output
  readonly progress: Progress
  /** Options of a call that changes nothing: Ctrl-C ends it at once. */
  readonly reading: CallOptions
  /** The context of the command. */
  context(): Promise<SelectedContext>
  /** The client of the allocation API, with the token of the context. */
  api(): Promise<AllocationClient>
  /** The same with another token. */
  apiWith(token: string): Promise<AllocationClient>
  /** The client of the lease witness. */
  witness(): Promise<LeaseClient>
  /** The tokens of the names and deployments of this context. */
  tokens(): Promise<TokenStore>
  /**
   * Sends a request that changes something. The first Ctrl-C waits for its response, so that its result is not lost; the
   * second one ends it.
   */
  write<Result>(send: (options: CallOptions) => Promise<Result>): Promise<Result>
  /** Continues if the user confirms, at the prompt or with `--yes`. */
  confirm(question: string, expected: string, isConfirmed: boolean): Promise<void>
  /** Asks for a secret. Without a terminal, the error says what to do otherwise. */
  askSecret(label: string, otherwise: string): Promise<string>
}

export interface SessionParts {
  readonly host: Host
  readonly globals: GlobalFlags
  readonly output: Output
  readonly progress: Progress
  /** Of `--timeout`, in milliseconds. */
  readonly timeoutMs: number | undefined
}

export const createSession = ({ host, globals, output, progress, timeoutMs }: SessionParts): Session => {
  const prompt = { stdin: host.stdin, stderr: host.stderr, signal: host.interrupted }
  const limits = timeoutMs === undefined ? {} : { deadlineMs: timeoutMs }
  let selected: Promise<SelectedContext> | undefined
  const context = () => {
    selected ??= readContexts(toContextsPath(host.env)).then(contexts => selectContext(contexts, globals.context))
    return selected
  }

  /** The token is read once, before the first request, so that a token command runs once. */
  const toOptions = async (
    service: 'api' | 'witness',
    endpoint: Endpoint,
    what: string,
    own?: string,
  ): Promise<ClientOptions> => {
    checkEndpoint(service, endpoint, what, own !== undefined)
    const token = own ?? (endpoint.token && (await readToken(endpoint.token, host.interrupted)))
    const hooks: NonNullable<ClientOptions['hooks']> = globals.verbose
      ? {
          onAttemptEnd: ({ method, route, status, durationMs, requestId, retryInMs }) => {
            const retry = retryInMs === null ? '' : `, next attempt in ${Math.round(retryInMs)} ms`
            const result = `${status ?? 'no response'} after ${Math.round(durationMs)} ms`
            host.stderr.write(`${method} ${route}: ${result} (request ${requestId}${retry})\n`)
          },
        }
      : {}
    return { baseUrl: endpoint.url, fetch: host.fetch, hooks, ...(token === undefined ? {} : { token }) }
  }
  const connect = async (service: 'api' | 'witness', what: string, token?: string): Promise<ClientOptions> => {
    const { name, context: services } = await context()
    const endpoint = services[service]
    if (endpoint) return toOptions(service, endpoint, what, token)
    throw new UsageError(`context ${name} has no ${what}; run: poolctl contexts set ${name} --${service} URL`)
  }
  let api: Promise<AllocationClient> | undefined
  let witness: Promise<LeaseClient> | undefined

  return {
    host,
    globals,
    output,
    progress,
    reading: { ...limits, signal: host.interrupted },
    context,
    api: () => {
      api ??= connect('api', 'allocation API').then(options => new AllocationClient(options))
      return api
    },
    apiWith: async token => new AllocationClient(await connect('api', 'allocation API', token)),
    witness: () => {
      witness ??= connect('witness', 'lease witness').then(options => new LeaseClient(options))
      return witness
    },
    tokens: async () => createTokenStore(toStateFolder(host.env), (await context()).name),
    async write(send) {
      host.interrupted.throwIfAborted()
      const explain = () => {
        progress.stop()
        host.stderr.write('waiting for the response to the request in flight; press Ctrl-C again to stop\n')
      }
      host.interrupted.addEventListener('abort', explain, { once: true })
      try {
        return await send({ ...limits, signal: host.killed })
      } finally {
        host.interrupted.removeEventListener('abort', explain)
      }
    },
    async confirm(question, expected, isConfirmed) {
      if (!isConfirmed) await promptConfirmation(prompt, question, expected)
    },
    askSecret: (label, otherwise) => promptSecret(prompt, label, otherwise),
  }
}
