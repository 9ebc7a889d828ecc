import type { EnvReader } from '@pool/runtime/service/env'
import { isJsonObject, parseJson } from '../lib/text.ts'

/** Constants that only tests change, as JSON in `PDM_TEST_SETTINGS`. */
export interface TestSettings {
  /** The API of Cloudflare or Dynadot. It is at 127.0.0.1, so that no credentials leave the machine. */
  readonly providerUrl?: string
  /** Whether `local` publishes pools whose names exist in the public DNS. */
  readonly publicPools?: boolean
  /** The folder of the console's build. */
  readonly consoleFolder?: string
  /** Credential checks per minute and client. */
  readonly validationAttempts?: number
}

export const TEST_SETTINGS_VARIABLE = 'PDM_TEST_SETTINGS'
const KEYS = ['providerUrl', 'publicPools', 'consoleFolder', 'validationAttempts']

const isTestSettings = (settings: unknown): settings is TestSettings =>
  isJsonObject(settings) &&
  Object.keys(settings).every(key => KEYS.includes(key)) &&
  (settings.providerUrl === undefined || URL.parse(String(settings.providerUrl))?.hostname === '127.0.0.1')

export const readTestSettings = (env: EnvReader): TestSettings => {
  const settings = parseJson(env.text(TEST_SETTINGS_VARIABLE) ?? '{}')
  if (isTestSettings(settings)) return settings
  env.addIssue(
    TEST_SETTINGS_VARIABLE,
    `is for tests: JSON of ${KEYS.join(', ')}, with a providerUrl at 127.0.0.1; remove it`,
  )
  return {}
}
