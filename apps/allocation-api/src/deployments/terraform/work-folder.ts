import { copyFile, mkdir, realpath, rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { type Backend, rootModule } from './root-module.ts'

export interface Folders {
  /** Absolute. */
  readonly folder: string
  readonly moduleFolder: string
}

export interface Call {
  readonly id: string
  readonly stateKey: string
  readonly backend: Backend | null
  readonly variables: readonly string[]
  readonly secrets: readonly string[]
}

/** For this user alone. */
const privately = { recursive: true, mode: 0o700 }
const LOCK_FILE = '.terraform.lock.hcl'

const workOf = (folder: string, id: string): string => {
  if (!/^[a-z0-9][a-z0-9-]{0,99}$/i.test(id)) throw new RangeError('the id of a making is letters, digits and hyphens')
  return join(folder, 'work', id)
}

/** Where states are kept without another backend. */
const localBackend = (folder: string): Backend => ({
  type: 'local',
  settings: { path: join(folder, 'state', '{deployment}.tfstate') },
})

export const isModuleFile = (name: string): boolean => /\.(?:tf|tofu)(?:\.json)?$/.test(name)

/** Makes the folder of a making, with the root module that calls the deployment's; returns where it is. */
export const makeWorkFolder = async ({ folder, moduleFolder }: Folders, call: Call): Promise<string> => {
  const work = workOf(folder, call.id)
  await mkdir(join(folder, 'state'), privately)
  await rm(work, { recursive: true, force: true })
  await mkdir(work, privately)
  const module = await realpath(moduleFolder)
  const source = relative(await realpath(work), module)
  const root = rootModule({
    ...call,
    source: source.startsWith('.') ? source : `./${source}`,
    backend: call.backend ?? localBackend(folder),
  })
  await writeFile(join(work, 'main.tf.json'), root, { mode: 0o600 })
  // The providers that the module was checked with, where somebody keeps them.
  await copyFile(join(module, LOCK_FILE), join(work, LOCK_FILE)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  return work
}

export const removeWorkFolder = async (folder: string, id: string): Promise<void> =>
  rm(workOf(folder, id), { recursive: true, force: true })
