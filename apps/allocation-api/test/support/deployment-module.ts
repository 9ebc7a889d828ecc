import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = fileURLToPath(new URL('../../../../', import.meta.url))
const fixture = 'apps/allocation-api/test/fixtures/deployment-module'

/** Controls of an apply, as files beside the module: see its main.tf. */
export type Control = 'leak' | 'freeze' | 'hold' | 'fail' | 'hold-destroy' | 'fail-destroy'

/** A copy of the deployment module whose applies a test controls. */
export interface DeploymentModule {
  /** The modules that it calls are copied too, so that relative paths work. */
  readonly directory: string
  /** Its settings. Not isolated: its files are a double of the cloud, which every run writes. */
  readonly env: Readonly<Record<'PDM_TERRAFORM_MODULE' | 'PDM_TERRAFORM_ISOLATION', string>>
  /** A file for each bucket that the module has created. */
  readonly bucketFolder: string
  set(control: Control, fqdn: string): void
  clear(control: Control, fqdn: string): void
  /** Removes the copy with all its controls, so an apply that holds continues. */
  remove(): void
}

export const copyDeploymentModule = (): DeploymentModule => {
  const top = realpathSync(mkdtempSync(join(tmpdir(), 'deployment-module-')))
  const filter = (source: string): boolean => !/\/\.terraform|\.tfstate/.test(source)
  for (const folder of [
    fixture,
    'infra/local-deployment',
    'infra/first-boot-secret',
    'infra/object-storage-inputs',
  ] as const) {
    cpSync(join(repository, folder), join(top, folder), { recursive: true, filter })
  }
  const directory = join(top, fixture)
  const bucketFolder = join(directory, 'buckets')
  mkdirSync(bucketFolder)
  const file = (control: Control, fqdn: string): string => join(directory, `${control}-${fqdn}`)
  return {
    directory,
    env: { PDM_TERRAFORM_MODULE: directory, PDM_TERRAFORM_ISOLATION: 'off' },
    bucketFolder,
    set: (control, fqdn) => writeFileSync(file(control, fqdn), ''),
    clear: (control, fqdn) => rmSync(file(control, fqdn), { force: true }),
    remove: () => rmSync(top, { recursive: true, force: true }),
  }
}
