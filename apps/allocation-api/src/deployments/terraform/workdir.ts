import { copyFile, mkdir, readdir, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Backend } from '../../config/terraform.ts'
import { rootModule } from './domain/root-module.ts'

export interface Folders {
  /** Absolute. */
  readonly folder: string
  readonly moduleFolder: string
}

export interface Call {
  readonly id: string
  readonly run: number
  readonly stateKey: string
  readonly backend: Backend | null
  readonly variables: readonly string[]
  readonly secrets: readonly string[]
}

/** For this user alone. */
const privately = { recursive: true, mode: 0o700 }
const LOCK_FILE = '.terraform.lock.hcl'

/** Where Terraform leaves a state that its backend does not take: https://developer.hashicorp.com/terraform/cli/state/recover */
const UNSAVED = 'errored.tfstate'

const ignoreAbsent = (error: NodeJS.ErrnoException): void => {
  if (error.code !== 'ENOENT') throw error
}

/** An id becomes the name of a folder. */
export const checkId = (id: string): void => {
  if (!/^[a-z0-9][a-z0-9-]{0,99}$/i.test(id)) throw new RangeError('the id of a making is letters, digits and hyphens')
}

/** One for each run: one that ends late must not remove the folder of the next. */
const workOf = (folder: string, id: string, run: number): string => {
  checkId(id)
  return join(folder, 'work', `${id}.${run}`)
}

/** A domain name can have 253 characters, a file name 255, of which Terraform's lock takes 19: the rest names a file in a folder. */
const LONGEST_NAME = 200

/** Where states are kept without another backend. */
const localBackend = (folder: string, stateKey: string): Backend => {
  const parts = [stateKey.slice(0, LONGEST_NAME), stateKey.slice(LONGEST_NAME)].filter(Boolean)
  return { type: 'local', settings: { path: `${join(folder, 'state', ...parts)}.tfstate` } }
}

export const isModuleFile = (name: string): boolean => /\.(?:tf|tofu)(?:\.json)?$/.test(name)

/** Makes the folder of a making, with the root module that calls the deployment's; returns where it is. */
export const makeWorkFolder = async ({ folder, moduleFolder }: Folders, call: Call): Promise<string> => {
  const work = workOf(folder, call.id, call.run)
  await mkdir(join(folder, 'state'), privately)
  await rm(work, { recursive: true, force: true })
  await mkdir(work, privately)
  const module = await realpath(moduleFolder)
  const source = relative(await realpath(work), module)
  const root = rootModule({
    ...call,
    source: source.startsWith('.') ? source : `./${source}`,
    backend: call.backend ?? localBackend(folder, call.stateKey),
  })
  await writeFile(join(work, 'main.tf.json'), root, { mode: 0o600 })
  // The providers that the module was checked with, where somebody keeps them.
  await copyFile(join(module, LOCK_FILE), join(work, LOCK_FILE)).catch(ignoreAbsent)
  return work
}

/** Null, or the file below `folder` in which a state is kept that is nowhere else. */
export const removeWorkFolder = async (folder: string, id: string, run: number): Promise<string | null> => {
  const work = workOf(folder, id, run)
  const kept = join('state', `${id}.${run}.${UNSAVED}`)
  const isKept = await rename(join(work, UNSAVED), join(folder, kept)).then(() => true, ignoreAbsent)
  await rm(work, { recursive: true, force: true })
  return isKept ? kept : null
}

/** Those of runs before this one; a later one may be at work already. Returns the files of states that are kept. */
export const clearWorkFolders = async (folder: string, id: string, before: number): Promise<string[]> => {
  const states: string[] = []
  const names = (await readdir(join(folder, 'work')).catch(ignoreAbsent)) ?? []
  for (const name of names) {
    const run = name.startsWith(`${id}.`) ? Number(name.slice(id.length + 1)) : Number.NaN
    const kept = run < before ? await removeWorkFolder(folder, id, run) : null
    if (kept !== null) states.push(kept)
  }
  return states
}
