import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import * as z from 'zod'
import type { TokenSource } from './contexts.ts'
import { LocalError, UsageError } from './exit-codes.ts'
import { readPrivateFile, readUserFile, writePrivateFile } from './private-file.ts'

/** The folder of the tokens: `POOLCTL_STATE`, or the place of the XDG Base Directory Specification. */
export const toStateFolder = (env: NodeJS.ProcessEnv): string =>
  env.POOLCTL_STATE?.trim() ||
  join(env.XDG_STATE_HOME?.trim() || join(env.HOME?.trim() || homedir(), '.local', 'state'), 'poolctl')

/** What a token proves: the ownership of a name or of a deployment. */
export type Subject =
  | { readonly kind: 'name'; readonly pool: string; readonly subdomain: string }
  | { readonly kind: 'deployment'; readonly id: string }
  /** A deployment whose id is not known yet. */
  | { readonly kind: 'new-deployment'; readonly fqdn: string }

const entry = z.strictObject({
  token: z.string().optional(),
  /** The key under which a challenge for the domain was created: only a deployment under the same key can use its value. */
  challengeKey: z.string().optional(),
  /** A request that was sent and may have taken effect. Its repetition under the same key returns the same result. */
  unanswered: z.strictObject({ idempotencyKey: z.string(), requestHash: z.string() }).optional(),
})
type Entry = z.infer<typeof entry>

const toFile = (folder: string, context: string, subject: Subject): string => {
  const base = join(folder, 'tokens', context)
  if (subject.kind === 'name') return join(base, 'names', subject.pool, `${subject.subdomain}.json`)
  if (subject.kind === 'deployment') return join(base, 'deployments', `${subject.id}.json`)
  return join(base, 'new-deployments', `${subject.fqdn}.json`)
}

const toHash = (request: object): string => createHash('sha256').update(JSON.stringify(request)).digest('hex')

const createKey = (): string => randomBytes(16).toString('hex')

export interface TokenStore {
  read(subject: Subject): Promise<string | undefined>
  save(subject: Subject, token: string): Promise<void>
  remove(subject: Subject): Promise<void>
  /** The Idempotency-Key of the challenge for a domain, and of the deployment that uses it. */
  createChallengeKey(subject: Subject): Promise<string>
  /**
   * Sends a request under an Idempotency-Key that is stored before. If the command is killed before it has the response,
   * its repetition sends the same key, so that it gets the token that only this response has. `request` identifies the
   * request and has no secret. `isFinal` says whether an error means that the request had no effect.
   */
  once<Result>(
    subject: Subject,
    request: object,
    steps: {
      readonly send: (idempotencyKey: string) => Promise<Result>
      /** The token to store; undefined: none. */
      readonly toToken: (result: Result) => string | undefined
      readonly isFinal: (error: unknown) => boolean
    },
  ): Promise<Result>
}

/** Tokens in files that only the user can read, one for each name and deployment of a context. */
export const createTokenStore = (folder: string, context: string): TokenStore => {
  const readEntry = async (subject: Subject): Promise<Entry> => {
    const file = toFile(folder, context, subject)
    const text = await readPrivateFile(file, 'the token file')
    if (text === null) return {}
    try {
      return entry.parse(JSON.parse(text))
    } catch {
      throw new LocalError(`the token file ${file} is damaged; move it away, and use --token-file with the token.`)
    }
  }
  const writeEntry = (subject: Subject, value: Entry) =>
    writePrivateFile(toFile(folder, context, subject), `${JSON.stringify(value)}\n`)
  const remove = (subject: Subject) => rm(toFile(folder, context, subject), { force: true })

  return {
    read: async subject => (await readEntry(subject)).token,
    save: (subject, token) => writeEntry(subject, { token }),
    remove,
    async createChallengeKey(subject) {
      const current = await readEntry(subject)
      const challengeKey = current.challengeKey ?? createKey()
      await writeEntry(subject, { ...current, challengeKey })
      return challengeKey
    },
    async once(subject, request, { send, toToken, isFinal }) {
      const current = await readEntry(subject)
      const { unanswered, ...former } = current
      const requestHash = toHash(request)
      const kept = unanswered?.requestHash === requestHash ? unanswered.idempotencyKey : undefined
      const idempotencyKey = kept ?? former.challengeKey ?? createKey()
      await writeEntry(subject, { ...former, unanswered: { idempotencyKey, requestHash } })
      const forget = () => (Object.keys(former).length === 0 ? remove(subject) : writeEntry(subject, former))
      const result = await send(idempotencyKey).catch(async (error: unknown) => {
        if (isFinal(error)) await forget()
        throw error
      })
      const received = toToken(result)
      await (received === undefined ? remove(subject) : writeEntry(subject, { token: received }))
      return result
    },
  }
}

/** Reads a token that the user keeps elsewhere. */
export const readTokenFile = async (path: string): Promise<string> => {
  const text = await readPrivateFile(path, 'the token file')
  if (text === null) throw new UsageError(`the token file ${path} does not exist; check the path.`)
  return toFileToken(path, text)
}

/** Of a token of records, which pods mount as a Secret: others of the pod may read it. */
export const readMountedTokenFile = async (path: string): Promise<string> =>
  toFileToken(path, await readUserFile(path, 'the token file'))

const toFileToken = (path: string, text: string): string => {
  const token = text.trim()
  if (/^[\x21-\x7e]{1,4096}$/.test(token)) return token
  throw new UsageError(`the token file ${path} does not contain one token.`)
}

const COMMAND_TIMEOUT_MS = 60_000
const MAX_TOKEN_LENGTH = 4_096

/** The first token of a list with commas, as the services read it: it is valid as long as the others. */
const toToken = (text: string, what: string): string => {
  const token = (text.split(',')[0] ?? '').trim()
  if (token === '') throw new UsageError(`${what} is empty; it must contain one token.`)
  if (token.length > MAX_TOKEN_LENGTH || !/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(`${what} does not contain one token; a token is one line of visible ASCII characters.`)
  }
  return token
}

/** Runs a token command. Its standard error and input are those of the terminal, so that it can prompt. */
const runTokenCommand = (command: string, signal: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', command], {
      stdio: ['inherit', 'pipe', 'inherit'],
      signal,
      killSignal: 'SIGTERM',
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), COMMAND_TIMEOUT_MS)
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.length > 2 * MAX_TOKEN_LENGTH) child.kill('SIGKILL')
    })
    child.once('error', () => {
      clearTimeout(timer)
      reject(new LocalError('the token command cannot be started; check it with: poolctl contexts show'))
    })
    child.once('close', (code, killedBy) => {
      clearTimeout(timer)
      if (code === 0) resolve(output)
      else {
        const reason = killedBy === null ? `exit code ${code}` : killedBy
        reject(new LocalError(`the token command failed (${reason}); check it with: poolctl contexts show`))
      }
    })
  })

/** Reads a token. Neither the token nor the output of a command is in an error. */
export const readToken = async (source: TokenSource, signal: AbortSignal): Promise<string> => {
  if ('command' in source)
    return toToken(await runTokenCommand(source.command, signal), 'the output of the token command')
  const text = await readPrivateFile(source.file, 'the token file')
  if (text === null) throw new UsageError(`the token file ${source.file} does not exist; create it with mode 600.`)
  return toToken(text, `the token file ${source.file}`)
}
