import { readFileSync, statSync } from 'node:fs'
import { type ConfigIssue, type Env, EnvReader, toFileVariable } from './env.ts'
import { findProxyIssues } from './proxy-issues.ts'
import { findUnknownVariables, type KnownVariables } from './unknown-variables.ts'

/** Far larger than any secret. A file of this size was named by mistake. */
const MAX_SECRET_BYTES = 1_048_576

const toCode = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : 'unknown')

/** The content without one final newline, or why there is none. The reason does not quote the content. */
const readSecret = (path: string): { readonly value: string } | { readonly reason: string } => {
  try {
    const stat = statSync(path)
    if (stat.isDirectory()) return { reason: 'which is a directory; name a file in it' }
    if (stat.size > MAX_SECRET_BYTES) return { reason: 'which is larger than 1 MiB; name a file with the secret only' }
    const value = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path)).replace(/\r?\n$/, '')
    return value.trim() === '' ? { reason: 'which is empty; write the secret into it' } : { value }
  } catch (error) {
    if (error instanceof TypeError) return { reason: 'which is not UTF-8 text' }
    return { reason: `which cannot be read (${toCode(error)}); correct the path, or the permissions of the file` }
  }
}

export interface SecretFiles {
  /** The environment in which each secret from a file has its own variable. It has no variable that names a file. */
  readonly env: Env
  readonly issues: readonly ConfigIssue[]
}

/**
 * Reads the secret of each variable from the file that `<VARIABLE>_FILE` names, so that a platform can mount secrets
 * instead of passing them in the environment.
 */
export const readSecretFiles = (env: Env, secretVariables: readonly string[]): SecretFiles => {
  const values: Record<string, string | undefined> = { ...env }
  const issues: ConfigIssue[] = []
  for (const variable of secretVariables) {
    const fileVariable = toFileVariable(variable)
    const path = env[fileVariable]?.trim()
    delete values[fileVariable]
    if (!path) continue
    if (env[variable]?.trim()) {
      issues.push({ variable: fileVariable, detail: `must not be set together with ${variable}; unset one of them` })
      continue
    }
    const secret = readSecret(path)
    if ('value' in secret) values[variable] = secret.value
    else issues.push({ variable: fileVariable, detail: `names ${path}, ${secret.reason}` })
  }
  return { env: values, issues }
}

export interface EnvironmentOptions {
  /** Every variable of the service, so that misspelt ones are found. */
  readonly known: KnownVariables
  /** The secrets that the caller needs. Each of them can be read from a file, which `<VARIABLE>_FILE` names. */
  readonly secrets: readonly string[]
}

/** Without the issues of variables whose file could not be read: they would only say that the variable is unset. */
const omitUnread = (issues: readonly ConfigIssue[], fileIssues: readonly ConfigIssue[]): readonly ConfigIssue[] => {
  const inFiles = new Set(fileIssues.map(({ variable }) => variable))
  return issues.filter(({ variable }) => !inFiles.has(toFileVariable(variable)))
}

/**
 * What `read` makes of the environment and the files of secrets, or everything that is wrong with them, so that an operator
 * can correct it in one step. `read` adds its issues to `env`; it may return null if there are any. An unknown variable
 * alone is not an issue, but next to issues it may be their cause.
 */
export const readEnvironment = <Config>(
  variables: Env,
  { known, secrets }: EnvironmentOptions,
  read: (env: EnvReader, values: Env) => Config | null,
): { readonly config: Config } | { readonly issues: readonly ConfigIssue[] } => {
  const files = readSecretFiles(variables, secrets)
  const env = new EnvReader(files.env)
  const config = read(env, files.env)
  const issues = [...files.issues, ...omitUnread(env.issues, files.issues), ...findProxyIssues(variables)]
  if (config !== null && issues.length === 0) return { config }
  return { issues: [...issues, ...findUnknownVariables(variables, known)] }
}
