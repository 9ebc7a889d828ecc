import type { Config } from '../config.ts'
import { startLocalProvider } from './local/start.ts'
import type { StartProvider } from './start.ts'

/** The providers by the name that `DNSPROVIDER_KIND` gives them. One more is one file and one line here. */
export const startProvider: Readonly<Record<Config['dns']['kind'], StartProvider>> = {
  local: startLocalProvider,
}
