import { access, constants, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { TerraformSettings } from '../config/terraform.ts'
import type { Provisioner } from '../deployments/provisioner.ts'
import { CORRECT_FOLDER, findForeignAccess } from '../deployments/terraform/folder-access.ts'
import type { Prerequisites } from '../deployments/terraform/prerequisites.ts'
import { readFreeBytes } from '../lib/free-space.ts'
import { bad, badWithAdvice, type Finding, good, notChecked } from './domain/report.ts'

/** Terraform's providers alone can take hundreds of megabytes for each run. */
const MIN_FREE_BYTES = 1_073_741_824

const findExisting = async (path: string): Promise<string> => {
  const exists = await stat(path).then(
    () => true,
    () => false,
  )
  return exists || path === dirname(path) ? path : findExisting(dirname(path))
}

const toMebibytes = (bytes: number): string => `${Math.floor(bytes / 1_048_576)} MiB`

/** Creates nothing: the folder would belong to the user who runs the check. */
const checkDataDir = async (dataDir: string): Promise<Finding> => {
  const check = 'deployments folder'
  const path = resolve(dataDir)
  const existing = await findExisting(path)
  const isUsable = await access(`${existing}/.`, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )
  if (!isUsable) {
    return bad(
      check,
      existing === path
        ? `${path} is not a folder that can be written`
        : `${path} does not exist, and ${existing} cannot be written`,
      'correct PDM_DEPLOYMENTS_DIR, or create the folder for the user of the service',
    )
  }
  const foreign = existing === path ? await findForeignAccess(path) : null
  if (foreign !== null) return bad(check, foreign, CORRECT_FOLDER)
  return good(
    check,
    existing === path ? `${path} can be written` : `${path} does not exist yet; the service creates it`,
  )
}

export const checkFreeSpace = async (
  folder: string,
  readFree: (path: string) => Promise<number> = readFreeBytes,
): Promise<Finding> => {
  const check = 'free space'
  const existing = await findExisting(resolve(folder))
  const free = await readFree(existing)
  const text = `${toMebibytes(free)} are free at ${existing}`
  return free < MIN_FREE_BYTES
    ? bad(check, text, 'free at least 1024 MiB, or move PDM_DEPLOYMENTS_DIR to a larger volume')
    : good(check, text)
}

const checkBackend = (
  { backend, passthrough }: TerraformSettings,
  env: Readonly<Record<string, unknown>>,
): Finding[] => {
  const unset = passthrough.filter(name => !env[name])
  return [
    backend === null
      ? good('terraform backend', 'local: the states are in the deployments folder; back it up')
      : notChecked(
          'terraform backend',
          `${backend.type}: only Terraform itself can reach it`,
          'create a deployment as a test',
        ),
    ...(unset.length > 0
      ? [
          bad(
            'terraform environment',
            `PDM_TERRAFORM_PASS_ENV lists ${unset.join(', ')}, which ${unset.length === 1 ? 'is' : 'are'} not set`,
            'set each variable, or remove it from the list',
          ),
        ]
      : []),
  ]
}

const checkIsolation = ({ isolation }: TerraformSettings, exposure: string | null): Finding => {
  const check = 'terraform isolation'
  if (exposure === null) return good(check, 'a module sees its run and the programs of the system only')
  const finding = badWithAdvice(check, exposure)
  return isolation === 'required' ? finding : { ...finding, state: 'not-checked' }
}

/** The variables that show that this process is meant to run deployments. Every unit and pod has PDM_DEPLOYMENTS_DIR. */
const DEPLOYMENT_VARIABLE = /^PDM_(?:TERRAFORM|DEPLOYMENT)_/

export const checkDeployments = async (
  settings: TerraformSettings,
  prerequisites: Pick<Prerequisites, 'checkBinary' | 'checkModule' | 'describeLimits'>,
  env: Readonly<Record<string, string | undefined>>,
  findExposure: () => Promise<string | null>,
): Promise<readonly Finding[]> => {
  const isWanted = Object.keys(env).some(name => DEPLOYMENT_VARIABLE.test(name) && env[name]?.trim())
  const [binary, module, limits, dataDir, space] = await Promise.all([
    prerequisites.checkBinary(),
    prerequisites.checkModule(),
    prerequisites.describeLimits(),
    checkDataDir(settings.dataDir),
    checkFreeSpace(settings.dataDir),
  ])
  // Without Terraform, everything but deployments works.
  if (binary !== null && !isWanted) {
    return [notChecked('deployments', `they are off on this machine: ${binary}`), space]
  }
  return [
    binary === null ? good('terraform binary', 'it runs') : badWithAdvice('terraform binary', binary),
    module === null
      ? good('terraform module', 'the folder has a module, and the modules that it calls by a relative path exist')
      : badWithAdvice('terraform module', module, 'correct PDM_TERRAFORM_MODULE'),
    ...(module === null && limits !== null ? [notChecked('what the module makes', limits)] : []),
    ...checkBackend(settings, env),
    checkIsolation(settings, await findExposure()),
    dataDir,
    space,
  ]
}

/** Where Terraform runs in another container. */
export const checkRunner = async (
  settings: TerraformSettings,
  provisioner: Pick<Provisioner, 'preflight' | 'describeExposure'>,
): Promise<readonly Finding[]> => {
  const missing = await provisioner.preflight()
  if (missing !== null) return [badWithAdvice('terraform runner', missing)]
  const found = good('terraform runner', 'it responds, and has a binary, a module and a folder')
  return [found, checkIsolation(settings, await provisioner.describeExposure())]
}
