import { join, resolve } from 'node:path'
import { PlainError } from './user-error.ts'

export interface Settings {
  readonly apiPort: number
  readonly operatorPort: number
  readonly dnsPort: number
  readonly witnessPort: number
  /** Ports that nobody chose: where the default is taken, another will do, for a start says where it listens. */
  readonly movable: readonly ('operatorPort' | 'dnsPort' | 'witnessPort')[]
  readonly dataDir: string
  /** The pool that the printed commands use. */
  readonly pool: string
  /** Handed to the services, each what it knows. */
  readonly env: NodeJS.ProcessEnv
}

export function readSettings(env: NodeJS.ProcessEnv, projectRoot: string): Settings {
  const faults: string[] = []
  const port = (name: string, fallback: number): number => {
    const text = env[name]?.trim() || String(fallback)
    const value = /^\d{1,5}$/.test(text) ? Number(text) : 0
    if (value < 1 || value > 65_535) faults.push(`${name} must be a port from 1 to 65535`)
    return value
  }
  const apiPort = port('PORT', 8080)
  const operatorPort = port('PDM_OPERATOR_PORT', 8081)
  const dnsPort = port('DNS_PORT', 5300)
  const witnessPort = port('WITNESS_PORT', 8787)
  const isChosen = (name: string) => Boolean(env[name]?.trim())
  const ports = { PORT: apiPort, PDM_OPERATOR_PORT: operatorPort, DNS_PORT: dnsPort, WITNESS_PORT: witnessPort }
  const chosen = Object.entries(ports).filter(([name]) => name === 'PORT' || isChosen(name))
  for (const [i, [name, value]] of chosen.entries()) {
    const earlier = chosen.slice(0, i).find(([_, port]) => port === value)
    if (value > 0 && earlier) faults.push(`${earlier[0]} and ${name} are both ${value}`)
  }
  const movable: Settings['movable'] = [
    ...(isChosen('PDM_OPERATOR_PORT') ? [] : (['operatorPort'] as const)),
    ...(isChosen('DNS_PORT') ? [] : (['dnsPort'] as const)),
    ...(isChosen('WITNESS_PORT') ? [] : (['witnessPort'] as const)),
  ]
  if (faults.length > 0) throw new PlainError(faults.join('; '))
  // A relative DATA_DIR is meant from where the command was typed: package managers tell it in INIT_CWD.
  const given = env.DATA_DIR?.trim()
  const dataDir = given ? resolve(env.INIT_CWD ?? '.', given) : join(projectRoot, '.data')
  return { apiPort, operatorPort, dnsPort, witnessPort, movable, dataDir, pool: firstPool(env), env }
}

function firstPool(env: NodeJS.ProcessEnv): string {
  const lists = [env.DNSPROVIDER_MANAGED_DOMAINS, env.DNSPROVIDER_DOMAIN, 'pool.test']
  const first = lists.flatMap(list => (list ?? '').toLowerCase().split(/[\s,]+/)).find(name => name !== '')
  return (first ?? '').replace(/\.$/, '')
}
