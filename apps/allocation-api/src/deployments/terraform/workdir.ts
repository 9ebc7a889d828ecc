import { copyFile, mkdir, readdir, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { type Backend, STATE_KEY_PLACEHOLDER } from '../../config/terraform.ts'

export interface Directories {
  /** Absolute. Holds the working directories in `work` and local states in `state`. */
  readonly dataDir: string
  readonly moduleDir: string
}

export interface WorkdirRequest {
  readonly id: string
  readonly run: number
  readonly stateKey: string
  /** Null for a state file in the data directory. */
  readonly backend: Backend | null
  readonly variables: readonly string[]
  readonly secrets: readonly string[]
}

export interface RootModule {
  /** A relative path: Terraform copies a module that is given by an absolute one. */
  readonly source: string
  readonly backend: Backend
  readonly stateKey: string
  /** Names of variables. */
  readonly variables: readonly string[]
  /** Names of variables whose values Terraform must not print. */
  readonly secrets: readonly string[]
}

/** The variables of the module interface that are lists. All others are strings. */
const LIST_VARIABLES: ReadonlySet<string> = new Set(['provider_names'])
/** The outputs of the module interface. */
const OUTPUTS = ['load_balancer_ip', 'control_plane_ip', 'details']

/** Escapes templates: in the JSON syntax too, string arguments are templates. A module's source is not one. */
const escapeTemplate = (text: string): string => text.replace(/[$%](?=\{)/g, '$&$&')

const fillPlaceholder = (value: unknown, stateKey: string): unknown => {
  if (typeof value === 'string') return escapeTemplate(value.replaceAll(STATE_KEY_PLACEHOLDER, stateKey))
  if (Array.isArray(value)) return value.map(item => fillPlaceholder(item, stateKey))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fillPlaceholder(item, stateKey)]))
}

/**
 * The root module that calls the deployment module, in Terraform's JSON syntax. It contains no values of variables. The
 * state holds outputs in plain text; Terraform rejects an output that was computed from a sensitive value.
 */
export const toRootModule = ({ source, backend, stateKey, variables, secrets }: RootModule): string => {
  const block = <Value>(names: readonly string[], toBody: (name: string) => Value): Record<string, Value> =>
    Object.fromEntries(names.map(name => [name, toBody(name)]))
  const all = [...variables, ...secrets]
  return JSON.stringify(
    {
      terraform: { backend: { [backend.type]: fillPlaceholder(backend.settings, stateKey) } },
      ...(all.length > 0 && {
        variable: block(all, name => ({
          type: LIST_VARIABLES.has(name) ? 'list(string)' : 'string',
          sensitive: secrets.includes(name),
        })),
      }),
      module: { deployment: { source, ...block(all, name => `\${var.${name}}`) } },
      // Null if the module does not have the output.
      output: block(OUTPUTS, name => ({ value: `\${try(module.deployment.${name}, null)}` })),
    },
    null,
    2,
  )
}

/** Only this user may read a working directory or a state. */
const PRIVATE_DIRECTORY = { recursive: true, mode: 0o700 }
const LOCK_FILE = '.terraform.lock.hcl'
/** Where Terraform saves a state that its backend rejects: https://developer.hashicorp.com/terraform/cli/state/recover */
const UNSAVED_STATE = 'errored.tfstate'
/** A domain name has up to 253 characters and a file name up to 255, of which Terraform's lock file takes 19. */
const MAX_STATE_NAME = 200

const ignoreMissing = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'ENOENT') throw error
}

/** An id becomes the name of a directory. */
export const validateId = (id: string): void => {
  if (!/^[a-z0-9][a-z0-9-]{0,99}$/i.test(id)) throw new RangeError('an id must be letters, digits and hyphens')
}

/** Each run has a directory, so that a run that ends late does not remove the directory of the next one. */
const toWorkdirPath = (dataDir: string, id: string, run: number): string => {
  validateId(id)
  return join(dataDir, 'work', `${id}.${run}`)
}

/** The rest of a long name becomes the name of a file in a directory. */
const toLocalBackend = (dataDir: string, stateKey: string): Backend => {
  const names = [stateKey.slice(0, MAX_STATE_NAME), stateKey.slice(MAX_STATE_NAME)].filter(Boolean)
  return { type: 'local', settings: { path: `${join(dataDir, 'state', ...names)}.tfstate` } }
}

export const isModuleFile = (name: string): boolean => /\.(?:tf|tofu)(?:\.json)?$/.test(name)

/** Creates the working directory of a run with its root module, and returns its path. */
export const createWorkdir = async ({ dataDir, moduleDir }: Directories, request: WorkdirRequest): Promise<string> => {
  const workdir = toWorkdirPath(dataDir, request.id, request.run)
  await mkdir(join(dataDir, 'state'), PRIVATE_DIRECTORY)
  await rm(workdir, { recursive: true, force: true })
  await mkdir(workdir, PRIVATE_DIRECTORY)
  const module = await realpath(moduleDir)
  const source = relative(await realpath(workdir), module)
  const rootModule = toRootModule({
    ...request,
    source: source.startsWith('.') ? source : `./${source}`,
    backend: request.backend ?? toLocalBackend(dataDir, request.stateKey),
  })
  await writeFile(join(workdir, 'main.tf.json'), rootModule, { mode: 0o600 })
  // Pins the provider versions that the module was tested with, if it has a lock file.
  await copyFile(join(module, LOCK_FILE), join(workdir, LOCK_FILE)).catch(ignoreMissing)
  return workdir
}

/** Returns the path, relative to the data directory, of a state that exists nowhere else; null if there is none. */
export const removeWorkdir = async (dataDir: string, id: string, run: number): Promise<string | null> => {
  const workdir = toWorkdirPath(dataDir, id, run)
  const target = join('state', `${id}.${run}.${UNSAVED_STATE}`)
  const isMoved = await rename(join(workdir, UNSAVED_STATE), join(dataDir, target)).then(() => true, ignoreMissing)
  await rm(workdir, { recursive: true, force: true })
  return isMoved ? target : null
}

/** Removes the directories of earlier runs; a later run may be in progress. Returns the unsaved states. */
export const removeEarlierWorkdirs = async (dataDir: string, id: string, before: number): Promise<string[]> => {
  const states: string[] = []
  const names = (await readdir(join(dataDir, 'work')).catch(ignoreMissing)) ?? []
  for (const name of names) {
    const run = name.startsWith(`${id}.`) ? Number(name.slice(id.length + 1)) : Number.NaN
    const state = run < before ? await removeWorkdir(dataDir, id, run) : null
    if (state !== null) states.push(state)
  }
  return states
}
