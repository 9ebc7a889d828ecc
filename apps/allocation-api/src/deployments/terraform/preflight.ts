import { execFile } from 'node:child_process'
import { access, constants, mkdir, readdir, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { isModuleFile } from './workdir.ts'

export interface Prerequisites {
  readonly binary: string | null
  readonly dataDir: string
  readonly moduleDir: string
  /** Environment of the binary. */
  readonly env: Readonly<Record<string, string>>
}

const INSTALL =
  'install Terraform (https://developer.hashicorp.com/terraform/install) or OpenTofu (https://opentofu.org/docs/intro/install/)'
const VERSION_TIMEOUT_MS = 10_000
/** Sufficient for the generated configuration, and the first version of OpenTofu. */
const MIN_VERSION = '1.6.0'

/** Parses the output of `version -json`; null if it is not Terraform's or OpenTofu's. */
export const parseVersion = (output: string): string | null => {
  try {
    const { terraform_version: version } = JSON.parse(output)
    return typeof version === 'string' && /^\d+\.\d+\.\d+/.test(version) ? version : null
  } catch {
    return null
  }
}

/** Compares the three numbers: a pre-release counts as its release. */
export const isTooOld = (version: string): boolean => {
  const toNumbers = (text: string) => text.split(/[.+-]/, 3).map(Number)
  const minimum = toNumbers(MIN_VERSION)
  const difference = toNumbers(version)
    .map((number, index) => number - (minimum[index] ?? 0))
    .find(value => value !== 0)
  return (difference ?? 0) < 0
}

const execute = promisify(execFile)

const isExecutable = async (path: string): Promise<boolean> => {
  const isAllowed = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
  return isAllowed && (await stat(path)).isFile()
}

/** Resolves a path, or a name on the PATH; null if there is no such executable. */
export const findBinary = async ({ binary, env }: Pick<Prerequisites, 'binary' | 'env'>): Promise<string | null> => {
  const names = binary === null ? ['terraform', 'tofu'] : [binary]
  const directories = (env.PATH ?? '').split(delimiter).filter(isAbsolute)
  for (const name of names) {
    const paths = name.includes('/') ? [resolve(name)] : directories.map(directory => join(directory, name))
    for (const path of paths) if (await isExecutable(path)) return path
  }
  return null
}

/**
 * Returns a check of what an apply needs: it resolves to the first problem, or null. A binary is asked for its version
 * only once, as long as its file does not change.
 */
export const createPreflight = (prerequisites: Prerequisites): (() => Promise<string | null>) => {
  const { binary, dataDir, moduleDir, env } = prerequisites
  let checked: { readonly file: string; readonly problem: string | null } | undefined

  const checkVersion = async (path: string): Promise<string | null> => {
    const { mtimeMs, size, ino } = await stat(path)
    const file = `${path} ${mtimeMs} ${size} ${ino}`
    if (checked?.file === file) return checked.problem
    const result = await execute(path, ['version', '-json'], { env, timeout: VERSION_TIMEOUT_MS }).catch(() => null)
    const version = result && parseVersion(result.stdout)
    // Not cached: the machine may have been too busy for a response in time.
    if (!version)
      return `${path} did not report a version: set the path of Terraform or OpenTofu in PDM_TERRAFORM_BINARY.`
    const problem = isTooOld(version)
      ? `${path} is version ${version}, but ${MIN_VERSION} or later is required: ${INSTALL}, or set PDM_TERRAFORM_BINARY.`
      : null
    checked = { file, problem }
    return problem
  }

  const checkBinary = async (): Promise<string | null> => {
    const path = await findBinary(prerequisites)
    if (path !== null) return checkVersion(path)
    return binary === null
      ? `Neither terraform nor tofu is on the PATH: ${INSTALL}, or set PDM_TERRAFORM_BINARY.`
      : `PDM_TERRAFORM_BINARY is ${binary}, which is not an executable file: ${INSTALL}.`
  }

  const checkDataDir = (): Promise<string | null> =>
    mkdir(dataDir, { recursive: true, mode: 0o700 })
      .then(() => access(dataDir, constants.W_OK | constants.X_OK))
      .then(
        () => null,
        () => `PDM_DEPLOYMENTS_DIR is ${dataDir}, which is not writable; check its permissions.`,
      )

  const checkModule = async (): Promise<string | null> => {
    const names = await readdir(moduleDir).catch(() => [])
    return names.some(isModuleFile)
      ? null
      : `PDM_TERRAFORM_MODULE is ${moduleDir}, which is not a directory with a Terraform module.`
  }

  return async () => (await checkBinary()) ?? (await checkDataDir()) ?? (await checkModule())
}
