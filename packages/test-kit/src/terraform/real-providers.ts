import { existsSync, readFileSync, writeFileSync } from 'node:fs'

/** REAL_PROVIDERS=1: tests that can use a real provider take the one that Terraform finds by the configuration of its user. */
export const usesRealProviders = process.env.REAL_PROVIDERS === '1'

/**
 * The variables by which Terraform finds providers: its configuration file, if there is one, with a registry or mirror, the
 * cache, and what a download needs.
 */
export const findProviderEnvironment = (): Record<string, string> => {
  const { HOME = '', TF_CLI_CONFIG_FILE = `${HOME}/.terraformrc` } = process.env
  const cache = ['TF_PLUGIN_CACHE_DIR', 'TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE'].flatMap(name => {
    const value = process.env[name]
    return value ? [[name, value] as const] : []
  })
  return {
    HOME,
    TF_CLI_CONFIG_FILE: existsSync(TF_CLI_CONFIG_FILE) ? TF_CLI_CONFIG_FILE : '/dev/null',
    ...Object.fromEntries(cache),
  }
}

/**
 * With REAL_PROVIDER_VERSION=lowest, replaces the version constraint of a provider in `file` by its lower bound. Terraform
 * itself takes the newest version.
 */
export const selectProviderVersion = (file: string): void => {
  const { REAL_PROVIDER_VERSION: wanted = 'newest' } = process.env
  if (!['lowest', 'newest'].includes(wanted)) {
    throw new Error(`REAL_PROVIDER_VERSION=${wanted} is invalid: set lowest or newest.`)
  }
  if (wanted === 'newest') return
  const text = readFileSync(file, 'utf8')
  const lowest = text.replace(/^(\s+version = ")(?:>=|~>) ([\d.]+)[^"]*"/m, '$1$2"')
  if (lowest === text) throw new Error(`${file} has no version constraint with a lower bound`)
  writeFileSync(file, lowest)
}
