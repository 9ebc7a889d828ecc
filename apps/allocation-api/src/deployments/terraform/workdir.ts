import {
  constants,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { type Backend, STATE_KEY_PLACEHOLDER } from '../../config/terraform.ts'
import { isJsonObject, parseJson } from '../../lib/text.ts'

export interface Directories {
  /** Absolute. Holds the working directories in `work` and local states in `state`. */
  readonly dataDir: string
  readonly moduleDir: string
}

export interface StateLocation {
  readonly stateKey: string
  /** Null for a state file in the data directory. */
  readonly backend: Backend | null
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
  /** An existing bucket, and the address that it gets in the state. */
  readonly bucketImport?: BucketImport
}

export interface BucketImport {
  readonly address: string
  readonly type: string
  /** The source of its provider. */
  readonly provider: string
  readonly id: string
}

/** The variables of the module interface that are lists. All others are strings. */
export const LIST_VARIABLES: ReadonlySet<string> = new Set(['provider_names'])
/** The outputs of the module interface. */
const OUTPUTS = ['load_balancer_ip', 'control_plane_ip', 'details']

/** Escapes templates: in the JSON syntax too, string arguments are templates. A module's source is not one. */
const escapeTemplate = (text: string): string => text.replace(/[$%](?=\{)/g, '$&$&')

const fillPlaceholder = (text: string, stateKey: string): string => text.replaceAll(STATE_KEY_PLACEHOLDER, stateKey)

const toArgument = (value: unknown, stateKey: string): unknown => {
  if (typeof value === 'string') return escapeTemplate(fillPlaceholder(value, stateKey))
  if (Array.isArray(value)) return value.map(item => toArgument(item, stateKey))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, toArgument(item, stateKey)]))
}

const toBackendBlock = ({ type, settings }: Backend, stateKey: string) => ({
  backend: { [type]: toArgument(settings, stateKey) },
})

/** OpenTofu looks for the provider of an import in the root module, under the first word of the type. */
const toRequiredProviders = ({ type, provider }: BucketImport) => ({ [type.replace(/_.*/, '')]: { source: provider } })

/** A root module that only finds the state: it needs neither providers nor variables. */
export const toStateModule = (backend: Backend, stateKey: string): string =>
  JSON.stringify({ terraform: toBackendBlock(backend, stateKey) }, null, 2)

/**
 * The root module that calls the deployment module, in Terraform's JSON syntax. It contains no values of variables. The
 * state holds outputs in plain text; Terraform rejects an output that was computed from a sensitive value.
 */
export const toRootModule = (root: RootModule): string => {
  const { source, backend, stateKey, variables, secrets, bucketImport } = root
  const block = <Value>(names: readonly string[], toBody: (name: string) => Value): Record<string, Value> =>
    Object.fromEntries(names.map(name => [name, toBody(name)]))
  const all = [...variables, ...secrets]
  return JSON.stringify(
    {
      terraform: {
        ...toBackendBlock(backend, stateKey),
        ...(bucketImport && { required_providers: toRequiredProviders(bucketImport) }),
      },
      ...(all.length > 0 && {
        variable: block(all, name => ({
          type: LIST_VARIABLES.has(name) ? 'list(string)' : 'string',
          sensitive: secrets.includes(name),
        })),
      }),
      ...(bucketImport && { import: { to: bucketImport.address, id: escapeTemplate(bucketImport.id) } }),
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
/** An empty folder, in which isolate.sh mounts. */
export const ISOLATION_ROOT = 'root'
const ROOT_MODULE = 'main.tf.json'
const LOCK_FILE = '.terraform.lock.hcl'
/** Prefix of working directories that belong to no run. */
const TEMPORARY = 'tmp-'
/** Where Terraform saves a state that its backend rejects: https://developer.hashicorp.com/terraform/cli/state/recover */
const UNSAVED_STATE = 'errored.tfstate'

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

const STATE_FILE = 'terraform.tfstate'

/** Each state has a folder, because a run may see its own state only. */
const toDefaultBackend = (dataDir: string, stateKey: string): Backend => ({
  type: 'local',
  settings: { path: join(dataDir, 'state', stateKey, STATE_FILE) },
})

/** Creates the folder of a local state and returns it; null if the state is remote. */
export const createStateDir = async (backend: Backend, stateKey: string): Promise<string | null> => {
  const path = toStatePath(backend, stateKey)
  if (path === null) return null
  await mkdir(dirname(path), PRIVATE_DIRECTORY)
  return dirname(path)
}

/** The state file; null if the backend is not `local`. */
const toStatePath = ({ type, settings }: Backend, stateKey: string): string | null =>
  type === 'local' ? fillPlaceholder(String(settings.path), stateKey) : null

/** Where the state of a request is. */
export const toBackend = (dataDir: string, stateKey: string, configured: Backend | null): Backend =>
  configured ?? toDefaultBackend(dataDir, stateKey)

/** The file that describes the lock of a local state; null if the backend is not `local`. */
export const toLockFilePath = (backend: Backend, stateKey: string): string | null => {
  const path = toStatePath(backend, stateKey)
  return path && join(dirname(path), `.${basename(path)}.lock.info`)
}

export const isModuleFile = (name: string): boolean => /\.(?:tf|tofu)(?:\.json)?$/.test(name)

/** Writes the root module of an apply, a destroy or a plan, and the lock file of the deployment module. */
export const writeRootModule = async (
  workdir: string,
  { dataDir, moduleDir }: Directories,
  request: StateLocation & Omit<RootModule, 'source' | 'backend'>,
): Promise<void> => {
  const module = await realpath(moduleDir)
  const source = relative(await realpath(workdir), module)
  const rootModule = toRootModule({
    ...request,
    source: source.startsWith('.') ? source : `./${source}`,
    backend: toBackend(dataDir, request.stateKey, request.backend),
  })
  await writeNew(join(workdir, ROOT_MODULE), rootModule)
  await copyLockFile(workdir, module)
}

/** A module that ran here before may have left a link to a file of the service. */
const writeNew = async (path: string, text: string): Promise<void> => {
  await rm(path, { force: true })
  await writeFile(path, text, { mode: 0o600, flag: 'wx' })
}

/** Pins the provider versions that the module was tested with, if it has a lock file. */
const copyLockFile = async (workdir: string, module: string): Promise<void> => {
  await rm(join(workdir, LOCK_FILE), { force: true })
  await copyFile(join(module, LOCK_FILE), join(workdir, LOCK_FILE), constants.COPYFILE_EXCL).catch(ignoreMissing)
}

/**
 * Writes a root module that only finds the state, and the lock file of the deployment module: `init` also installs the
 * providers of the state, and takes their newest versions if nothing else is chosen.
 */
export const writeStateModule = async (
  workdir: string,
  { dataDir, moduleDir }: Directories,
  { stateKey, backend }: StateLocation,
): Promise<void> => {
  const text = toStateModule(toBackend(dataDir, stateKey, backend), stateKey)
  await writeNew(join(workdir, ROOT_MODULE), text)
  await copyLockFile(workdir, moduleDir)
}

const createDirectories = async (dataDir: string): Promise<string> => {
  for (const name of ['state', ISOLATION_ROOT]) await mkdir(join(dataDir, name), PRIVATE_DIRECTORY)
  const parent = join(dataDir, 'work')
  await mkdir(parent, PRIVATE_DIRECTORY)
  return parent
}

/** Creates the empty working directory of a run, and returns its path. */
export const createWorkdir = async (dataDir: string, id: string, run: number): Promise<string> => {
  const workdir = toWorkdirPath(dataDir, id, run)
  await createDirectories(dataDir)
  await rm(workdir, { recursive: true, force: true })
  await mkdir(workdir, PRIVATE_DIRECTORY)
  return workdir
}

const isOlderThan = async (path: string, ageMs: number): Promise<boolean> => {
  const found = await stat(path).catch(ignoreMissing)
  return found !== undefined && found.mtimeMs < Date.now() - ageMs
}

/** Creates a working directory for commands that belong to no run. Removes those of processes that were killed. */
export const createTemporaryWorkdir = async (dataDir: string, maxAgeMs: number): Promise<string> => {
  const parent = await createDirectories(dataDir)
  for (const name of await readdir(parent)) {
    const path = join(parent, name)
    const isOld = name.startsWith(TEMPORARY) && (await isOlderThan(path, maxAgeMs))
    if (isOld) await rm(path, { recursive: true, force: true })
  }
  return mkdtemp(join(parent, TEMPORARY))
}

export const removeTemporaryWorkdir = async (workdir: string | undefined): Promise<null> => {
  if (workdir !== undefined) await rm(workdir, { recursive: true, force: true })
  return null
}

/**
 * Moves a local state to the folder `archive` beside it. Any other state stays where it is: its key is that of a lineage,
 * which no later deployment has. Returns a sentence that says where the state is.
 */
export const archiveState = async (dataDir: string, stateKey: string, configured: Backend | null): Promise<string> => {
  const backend = toBackend(dataDir, stateKey, configured)
  const path = toStatePath(backend, stateKey)
  if (path === null) {
    return `The state stays in the ${backend.type} backend under the key ${stateKey}; no other deployment uses it.`
  }
  // A run could put a link into the folder of its state.
  const folder = configured ? 'archive' : join('archive', stateKey)
  const archive = join(configured ? dirname(path) : join(dataDir, 'state'), folder)
  await mkdir(archive, PRIVATE_DIRECTORY)
  const suffix = new Date().toISOString().replaceAll(/[-:]/g, '')
  for (const file of [path, `${path}.backup`]) {
    await rename(file, join(archive, `${basename(file)}.${suffix}`)).catch(ignoreMissing)
  }
  // Of an interrupted call too.
  const names = (await readdir(archive)).filter(name => name.startsWith(`${basename(path)}.`)).toSorted()
  return names.length > 0
    ? `The state is in ${names.map(name => join(folder, name)).join(', ')}.`
    : 'No state was found.'
}

/** The state before the last change, which has the secrets of what was destroyed. */
export const removeStateBackup = async (
  dataDir: string,
  stateKey: string,
  configured: Backend | null,
): Promise<void> => {
  const path = toStatePath(toBackend(dataDir, stateKey, configured), stateKey)
  if (path !== null) await rm(`${path}.backup`, { force: true })
}

/** Removes the files of a local state without resources, which no later deployment uses. */
export const discardEmptyState = async (
  dataDir: string,
  stateKey: string,
  configured: Backend | null,
): Promise<void> => {
  const path = toStatePath(toBackend(dataDir, stateKey, configured), stateKey)
  if (path === null) return
  await removeStateBackup(dataDir, stateKey, configured)
  const state = parseJson((await readFile(path, 'utf8').catch(ignoreMissing)) ?? '{"resources":[]}')
  if (!isJsonObject(state) || !Array.isArray(state.resources) || state.resources.length > 0) return
  await rm(configured ? path : dirname(path), { recursive: true, force: true })
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

/** The unsaved states of a deployment on this machine: file names in the folder of the states. */
export const listUnsavedStates = async (dataDir: string, id: string): Promise<string[]> => {
  validateId(id)
  const names = (await readdir(join(dataDir, 'state')).catch(ignoreMissing)) ?? []
  return names.filter(name => name.startsWith(`${id}.`) && name.endsWith(`.${UNSAVED_STATE}`))
}
