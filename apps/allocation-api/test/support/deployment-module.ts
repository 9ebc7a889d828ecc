import { cpSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const repository = fileURLToPath(new URL('../../../../', import.meta.url))
const fixture = 'apps/allocation-api/test/fixtures/deployment-module'

/** What a file beside the module makes an apply do: see its main.tf. */
export type Control = 'tell' | 'deaf' | 'hold' | 'fail'

/** A copy of the deployment module that tests control. */
export interface DeploymentModule {
  /** Its folder; what it calls is copied beside it, so a configuration names it by a relative path. */
  readonly directory: string
  set(control: Control, fqdn: string): void
  clear(control: Control, fqdn: string): void
  /** Takes the copy away, and with it every control: what holds goes on. */
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
  const file = (control: Control, fqdn: string): string => join(directory, `${control}-${fqdn}`)
  return {
    directory,
    set: (control, fqdn) => writeFileSync(file(control, fqdn), ''),
    clear: (control, fqdn) => rmSync(file(control, fqdn), { force: true }),
    remove: () => rmSync(top, { recursive: true, force: true }),
  }
}
