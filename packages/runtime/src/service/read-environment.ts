import { type ConfigIssue, type Env, EnvReader, toFileVariable } from './env.ts'
import { readSecretFiles } from './secret-files.ts'
import { findUnknownVariables, type KnownVariables } from './unknown-variables.ts'

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
  const issues = [...files.issues, ...omitUnread(env.issues, files.issues)]
  if (config !== null && issues.length === 0) return { config }
  return { issues: [...issues, ...findUnknownVariables(variables, known)] }
}
