import { execFile } from 'node:child_process'
import { access, constants, mkdir, readdir, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { isTooOld, OLDEST, versionIn } from './domain/version.ts'
import { isModuleFile } from './workdir.ts'

export interface Parts {
  readonly binary: string | null
  readonly folder: string
  readonly moduleFolder: string
  /** Of the binary when it is asked for its version. */
  readonly env: Readonly<Record<string, string>>
}

const INSTALL =
  'install Terraform (https://developer.hashicorp.com/terraform/install) or OpenTofu (https://opentofu.org/docs/intro/install/)'
const VERSION_TIMEOUT_MS = 10_000

const run = promisify(execFile)

const isExecutable = async (path: string): Promise<boolean> => {
  const mayRun = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
  return mayRun && (await stat(path)).isFile()
}

/** A path as it is, a name on the PATH; null: there is no such executable. */
export const findBinary = async ({ binary, env }: Pick<Parts, 'binary' | 'env'>): Promise<string | null> => {
  const names = binary === null ? ['terraform', 'tofu'] : [binary]
  const places = (env.PATH ?? '').split(delimiter).filter(isAbsolute)
  for (const name of names) {
    const paths = name.includes('/') ? [resolve(name)] : places.map(place => join(place, name))
    for (const path of paths) if (await isExecutable(path)) return path
  }
  return null
}

/** What is missing for a making to work, or null. A version is asked for once, as long as the file stays the same. */
export const createLacks = (parts: Parts): (() => Promise<string | null>) => {
  let known: { readonly file: string; readonly verdict: string | null } | undefined

  const versionLack = async (path: string): Promise<string | null> => {
    const { mtimeMs, size, ino } = await stat(path)
    const file = `${path} ${mtimeMs} ${size} ${ino}`
    if (known?.file === file) return known.verdict
    const asked = await run(path, ['version', '-json'], { env: parts.env, timeout: VERSION_TIMEOUT_MS }).catch(
      () => null,
    )
    const version = asked && versionIn(asked.stdout)
    // It may have been too busy to answer: not remembered.
    if (!version) return `${path} does not tell its version: name Terraform or OpenTofu in PDM_TERRAFORM_BINARY.`
    const verdict = isTooOld(version)
      ? `${path} is of version ${version}, and ${OLDEST} or later is needed: ${INSTALL}, or name it in PDM_TERRAFORM_BINARY.`
      : null
    known = { file, verdict }
    return verdict
  }

  const binaryLack = async (): Promise<string | null> => {
    const path = await findBinary(parts)
    if (path !== null) return versionLack(path)
    return parts.binary === null
      ? `Neither terraform nor tofu is on the PATH: ${INSTALL}, or name the binary in PDM_TERRAFORM_BINARY.`
      : `PDM_TERRAFORM_BINARY is ${parts.binary}, which is no executable file: ${INSTALL}.`
  }

  const folderLack = (): Promise<string | null> =>
    mkdir(parts.folder, { recursive: true, mode: 0o700 })
      .then(() => access(parts.folder, constants.W_OK | constants.X_OK))
      .then(
        () => null,
        () => `PDM_DEPLOYMENTS_DIR is ${parts.folder}, where this process cannot write.`,
      )

  const moduleLack = async (): Promise<string | null> => {
    const names = await readdir(parts.moduleFolder).catch(() => [])
    return names.some(isModuleFile)
      ? null
      : `PDM_TERRAFORM_MODULE is ${parts.moduleFolder}, which is no folder with a Terraform module.`
  }

  return async () => (await binaryLack()) ?? (await folderLack()) ?? (await moduleLack())
}
