import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Env } from '../../config/env.ts'
import type { TerraformSettings } from '../../config/terraform.ts'
import { createKeyedMutex } from '../../lib/keyed-mutex.ts'
import type { Line } from '../domain/types.ts'
import type { Made, Making, Provisioner } from '../provisioner.ts'
import { environmentOf, secretsIn } from './domain/env.ts'
import { createTeller } from './domain/output-collector.ts'
import { createMask, maskValue } from './domain/secret-masker.ts'
import { createLacks, findBinary } from './preflight.ts'
import { runInGroup } from './process-group.ts'
import { checkId, clearWorkFolders, makeWorkFolder, removeWorkFolder } from './workdir.ts'

export interface TerraformOptions extends TerraformSettings {
  /** The service's own environment; what of it is passed on is decided here. */
  readonly env: Env
  /** From SIGINT, after which Terraform ends what it is at and saves its state, to SIGKILL. 10 s if not given. */
  readonly graceMs?: number
}

const OWN_MODULE = fileURLToPath(new URL('../../../../../infra/local-deployment', import.meta.url))
const GRACE_MS = 10_000

const init = ['init', '-input=false', '-no-color']
/** Another replica, or a guard, may be about to let go of the state. */
const apply = ['apply', '-input=false', '-auto-approve', '-json', '-lock-timeout=60s']

/** Without it what was made would be made a second time. */
const unsaved = (file: string): Line => ({
  phase: 'end',
  level: 'error',
  message: `The state could not be stored, and is kept in PDM_DEPLOYMENTS_DIR as ${file}: before this is created again, it must be pushed (terraform state push).`,
})

/** They become names of files, keys of a backend and names of variables. */
const check = ({ id, run, stateKey, variables, secrets }: Making): void => {
  checkId(id)
  if (!/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/.test(stateKey)) throw new RangeError('a state key is a domain name')
  if (!Number.isSafeInteger(run) || run < 1) throw new RangeError('runs are counted from 1')
  const names = [...Object.keys(variables), ...Object.keys(secrets)]
  if (!names.every(name => /^[a-z][a-z0-9_]*$/.test(name))) throw new RangeError('a variable is named in lower case')
  if (new Set(names).size < names.length) throw new RangeError('a variable is secret or not, and not both')
  const values = [...Object.values(variables), ...Object.values(secrets)]
  if (values.some(value => value.includes('\0'))) throw new RangeError('the environment cannot carry U+0000')
}

/** Terraform complains of a file that is named and is not there, and it runs in another folder. */
const withCliConfig = async ({ TF_CLI_CONFIG_FILE: file, ...env }: Env): Promise<Env> => {
  if (!file) return env
  const path = resolve(file)
  return access(path).then(
    () => ({ ...env, TF_CLI_CONFIG_FILE: path }),
    () => env,
  )
}

/**
 * Infrastructure by `terraform` or `tofu`: for each making a root module of its own that calls the module of the
 * deployment, `init`, `apply`. Another making for the same state key waits, within its own deadline; other processes
 * are kept out by Terraform's own lock of the state, where the backend has one.
 */
export const createTerraform = (options: TerraformOptions): Provisioner => {
  const { binary, backend, timeoutMs, passthrough: passed, graceMs = GRACE_MS } = options
  const folders = { folder: resolve(options.dataDir), moduleFolder: resolve(options.moduleDir ?? OWN_MODULE) }
  const turns = createKeyedMutex()
  const parts = { binary, ...folders, env: environmentOf({ PATH: options.env.PATH, HOME: options.env.HOME }, [], {}) }
  const lacks = createLacks(parts)

  const make: Provisioner['make'] = async (making, tell, signal) => {
    check(making)
    const { id, run: number, stateKey, variables, secrets } = making
    const deadline = AbortSignal.timeout(timeoutMs)
    const ending = AbortSignal.any([signal, deadline])
    const stopped = (): Made =>
      signal.aborted
        ? { kind: 'stopped' }
        : { kind: 'failed', reason: `It was not done within ${timeoutMs / 1_000} s (PDM_DEPLOYMENT_TIMEOUT).` }
    const giveTurn = await turns.acquire(stateKey, ending)
    if (!giveTurn) return stopped()
    const mask = createMask([...Object.values(secrets), ...secretsIn(options.env, passed)])
    const teller = createTeller(mask, tell)

    const run = async (phase: 'init' | 'apply', args: readonly string[], file: string, folder: string) => {
      const telling = teller.of(phase)
      const env = environmentOf(await withCliConfig(options.env), passed, { ...variables, ...secrets })
      const exit = await runInGroup({ file, args, folder, env, onOutput: telling.hear, signal: ending, graceMs })
      telling.end()
      if (exit.code === 0) return { made: telling.outputs() ?? {} }
      if (ending.aborted) return stopped()
      const silent = `${phase} ended with ${exit.signal ?? `exit code ${exit.code}`} and gave no reason.`
      return { kind: 'failed', reason: telling.reason() ?? silent } as const
    }

    try {
      const file = await findBinary(parts)
      if (file === null) return { kind: 'failed', reason: (await lacks()) ?? 'The binary is gone.' }
      const names = { variables: Object.keys(variables), secrets: Object.keys(secrets) }
      const folder = await makeWorkFolder(folders, { id, run: number, stateKey, backend, ...names })
      if (ending.aborted) return stopped()
      const prepared = await run('init', init, file, folder)
      if (!('made' in prepared)) return prepared
      if (ending.aborted) return stopped()
      const applied = await run('apply', apply, file, folder)
      if (!('made' in applied)) return applied
      return { kind: 'made', outputs: Object(maskValue(applied.made, mask)) }
    } finally {
      giveTurn()
      // No reason to call what was made a failure.
      const kept = await removeWorkFolder(folders.folder, id, number).catch(() => {
        tell({ phase: 'end', level: 'warn', message: 'The work folder could not be removed.' })
        return null
      })
      if (kept) tell(unsaved(kept))
    }
  }

  return {
    lacks,
    make,
    clear: async (id, run, tell) => {
      for (const kept of await clearWorkFolders(folders.folder, id, run)) tell(unsaved(kept))
    },
  }
}
