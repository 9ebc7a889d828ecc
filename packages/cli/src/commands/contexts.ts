import { resolve } from 'node:path'
import type { CommandSpec, GroupSpec } from '../command.ts'
import {
  type Context,
  type Contexts,
  checkEndpoint,
  type Endpoint,
  parseContextName,
  parseServiceUrl,
  readContexts,
  selectContext,
  type TokenSource,
  toContextsPath,
  writeContexts,
} from '../contexts.ts'
import { UsageError } from '../exit-codes.ts'
import type { Session } from '../session.ts'
import type { Column } from '../table.ts'

interface NamedContext {
  readonly name: string
  readonly isCurrent: boolean
  readonly api?: Endpoint | undefined
  readonly witness?: Endpoint | undefined
}

const describeToken = (endpoint: Endpoint | undefined): string | undefined => {
  if (endpoint === undefined) return undefined
  const { token } = endpoint
  if (token === undefined) return 'none'
  return 'file' in token ? `file ${token.file}` : `command ${token.command}`
}

const columns: readonly Column<NamedContext>[] = [
  { header: 'CURRENT', value: ({ isCurrent }) => (isCurrent ? '*' : '') },
  { header: 'NAME', value: ({ name }) => name },
  { header: 'API', value: ({ api }) => api?.url },
  { header: 'WITNESS', value: ({ witness }) => witness?.url },
]

const load = async ({ host }: Session): Promise<{ readonly path: string; readonly contexts: Contexts }> => {
  const path = toContextsPath(host.env)
  return { path, contexts: await readContexts(path) }
}

type TextFlags = Readonly<Record<string, string | boolean | undefined>>

const toTokenSource = (flags: TextFlags, service: 'api' | 'witness'): TokenSource | undefined => {
  const file = flags[`${service}TokenFile`]
  const command = flags[`${service}TokenCommand`]
  if (file !== undefined && command !== undefined) {
    throw new UsageError(`--${service}-token-file and --${service}-token-command exclude each other; use one of them.`)
  }
  if (typeof file === 'string') {
    if (file === '') throw new UsageError(`--${service}-token-file must be a path.`)
    // The command is also used in other folders.
    return { file: resolve(file) }
  }
  if (typeof command !== 'string') return undefined
  if (command.trim() === '') throw new UsageError(`--${service}-token-command must be a command.`)
  return { command }
}

/** The new endpoint of a context: what the flags do not name stays. */
const toEndpoint = (
  former: Endpoint | undefined,
  flags: TextFlags,
  service: 'api' | 'witness',
): Endpoint | undefined => {
  const given = flags[service]
  const token = toTokenSource(flags, service) ?? former?.token
  const url = typeof given === 'string' ? parseServiceUrl(given, `--${service}`) : former?.url
  if (url === undefined) {
    if (token === undefined) return undefined
    throw new UsageError(`--${service} is required with a token for it; add its URL.`)
  }
  const insecure = flags.insecure === true || former?.insecure === true
  const endpoint = { url, ...(token ? { token } : {}), ...(insecure ? { insecure } : {}) }
  checkEndpoint(service, endpoint, `--${service}`)
  return endpoint
}

const setContext: CommandSpec = {
  name: 'set',
  summary: 'Create a context, or change it',
  description:
    'A context has the addresses of one installation and where their tokens come from. Flags that are absent keep their value. The first context becomes the current one. A token is never stored in the contexts file.',
  arguments: [{ name: 'NAME', description: 'the name of the context', suggest: 'contexts' }],
  flags: [
    { flags: '--api <url>', description: 'the allocation API; its operator listener for the commands of operators' },
    { flags: '--api-token-file <file>', description: 'a file with the operator token, mode 600', suggest: 'files' },
    { flags: '--api-token-command <command>', description: 'a shell command that prints the operator token' },
    { flags: '--witness <url>', description: 'the lease witness' },
    {
      flags: '--witness-token-file <file>',
      description: 'a file with the token of the witness, mode 600',
      suggest: 'files',
    },
    { flags: '--witness-token-command <command>', description: 'a shell command that prints the token of the witness' },
    { flags: '--insecure', description: 'permit tokens over http to another machine' },
  ],
  examples: [
    'contexts set local --api http://127.0.0.1:8081 --api-token-file .data/operator-token',
    "contexts set prod --api https://pool.example --api-token-command 'pass show pool/operator'",
    'contexts set prod --witness https://witness.example --witness-token-file ~/.witness-token',
  ],
  async run(session, { args, flags }) {
    const name = parseContextName(String(args[0]))
    const { path, contexts } = await load(session)
    const former = contexts.contexts[name]
    const texts = flags as TextFlags
    const api = toEndpoint(former?.api, texts, 'api')
    const witness = toEndpoint(former?.witness, texts, 'witness')
    if (!api && !witness) throw new UsageError('a context needs --api URL, --witness URL, or both.')
    const context: Context = { ...(api ? { api } : {}), ...(witness ? { witness } : {}) }
    await writeContexts(path, {
      current: contexts.current ?? name,
      contexts: { ...contexts.contexts, [name]: context },
    })
    await session.output.done({ name, ...context }, `Context ${name} is stored in ${path}.`, name)
  },
}

const useContext: CommandSpec = {
  name: 'use',
  summary: 'Make a context the current one',
  arguments: [{ name: 'NAME', description: 'the name of the context', suggest: 'contexts' }],
  examples: ['contexts use prod'],
  async run(session, { args }) {
    const { path, contexts } = await load(session)
    const { name } = selectContext(contexts, String(args[0]))
    await writeContexts(path, { ...contexts, current: name })
    await session.output.done({ current: name }, `The current context is ${name}.`, name)
  },
}

const listContexts: CommandSpec = {
  name: 'list',
  summary: 'List the contexts',
  examples: ['contexts list', 'contexts list -o name'],
  async run(session) {
    const { contexts } = await load(session)
    const rows = Object.entries(contexts.contexts)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, context]) => ({ name, isCurrent: name === contexts.current, ...context }))
    await session.output.list<NamedContext>(rows, {
      key: 'contexts',
      columns,
      toName: ({ name }) => name,
      empty: 'No contexts. Create one with: poolctl contexts set NAME --api URL',
    })
  },
}

const showContext: CommandSpec = {
  name: 'show',
  summary: 'Show one context',
  arguments: [{ name: '[NAME]', description: 'the current context by default', suggest: 'contexts' }],
  examples: ['contexts show', 'contexts show prod -o json'],
  async run(session, { args }) {
    const { contexts } = await load(session)
    const requested = typeof args[0] === 'string' ? args[0] : session.globals.context
    const { name, context } = selectContext(contexts, requested)
    await session.output.item(
      { name, ...context },
      {
        name,
        fields: [
          ['name', name],
          ['api', context.api?.url],
          ['api token', describeToken(context.api)],
          ['witness', context.witness?.url],
          ['witness token', describeToken(context.witness)],
        ],
      },
    )
  },
}

const removeContext: CommandSpec = {
  name: 'remove',
  summary: 'Remove a context',
  description: 'The files that it names, and the reservation tokens of its names, stay.',
  arguments: [{ name: 'NAME', description: 'the name of the context', suggest: 'contexts' }],
  examples: ['contexts remove old'],
  async run(session, { args }) {
    const { path, contexts } = await load(session)
    const { name } = selectContext(contexts, String(args[0]))
    const { [name]: _, ...rest } = contexts.contexts
    const { current, ...others } = contexts
    await writeContexts(path, {
      ...others,
      ...(current === undefined || current === name ? {} : { current }),
      contexts: rest,
    })
    await session.output.done({ removed: name }, `Context ${name} is removed.`, name)
  },
}

export const contextCommands: GroupSpec = {
  name: 'contexts',
  summary: 'Addresses of installations and the sources of their tokens',
  commands: [listContexts, showContext, setContext, useContext, removeContext],
}
