import { resolve } from 'node:path'
import { parseTokenList } from '../src/http/domain/token-list.ts'
import { LOG_LEVELS } from '../src/log.ts'

export interface LocalConfig {
  readonly port: number
  /** Holds `lease-witness/`: the objects and the namespace, as workerd keeps them. */
  readonly dataDir: string
  /** What the worker gets beside the variables of wrangler.toml. */
  readonly bindings: Readonly<Record<string, string>>
}

/** The environment as a configuration, or every fault of it at once. */
export const readConfig = (
  env: Readonly<Record<string, string | undefined>>,
  projectRoot: string,
): { readonly config: LocalConfig } | { readonly faults: readonly string[] } => {
  const faults: string[] = []
  const portText = env.PORT?.trim() || '8787'
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : -1
  if (port < 0 || port > 65_535) faults.push('PORT must be a port from 0 to 65535')

  const level = env.LOG_LEVEL?.trim()
  const isLevel = !level || LOG_LEVELS.some(known => known === level.toLowerCase())
  if (!isLevel) faults.push(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}`)

  const csv = env.BEARER_TOKENS_CSV ?? ''
  // A header cannot carry anything else; such a token would let nobody in, and nobody would know why.
  if (parseTokenList(csv).some(token => !/^[!-~]+$/.test(token))) {
    faults.push('BEARER_TOKENS_CSV must be tokens of printable ASCII without spaces, separated by commas')
  }
  if (faults.length > 0) return { faults }
  // A relative DATA_DIR is meant from where the command was typed: package managers tell it in INIT_CWD.
  const given = env.DATA_DIR?.trim()
  const dataDir = given ? resolve(env.INIT_CWD ?? '.', given) : resolve(projectRoot, '.data')
  return { config: { port, dataDir, bindings: { BEARER_TOKENS_CSV: csv, ...(level ? { LOG_LEVEL: level } : {}) } } }
}
