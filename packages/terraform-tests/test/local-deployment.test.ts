import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { alter, flat, mark, type Stage, stage, stateOf } from './fixtures/stage.ts'
import { withTerraform } from './fixtures/terraform-test.ts'

const accessKey = `${mark}-ACCES`
const secretKey = `${mark}-SECRET`.padEnd(32, 'x')

const without = {
  deployment_id: '0c6b9d5e-8f0b-4e8a-9a3f-1d2c3b4a5f60',
  org_name: 'Acme "${x GmbH',
  org_email: 'ops@acme.example',
  sovereign_fqdn: 'acme.pool.test',
  region: 'fsn1',
  ssh_public_key: 'ssh-ed25519 AAAA ops@acme',
  provider_names: ['hetzner'],
  object_storage_provider: 'hetzner',
  object_storage_domain: 'storage.test',
  object_storage_region: '',
  object_storage_bucket: '',
  object_storage_access_key: '',
  object_storage_secret_key: '',
}
const withStorage = {
  ...without,
  object_storage_region: 'fsn1',
  object_storage_bucket: 'catalyst-acme-pool-test',
  object_storage_access_key: accessKey,
  object_storage_secret_key: secretKey,
}

const folders = ['infra/local-deployment', 'infra/first-boot-secret', 'infra/object-storage-inputs'] as const

/** The module as a child of another configuration, as the API calls it. */
const root = `
${Object.entries(without)
  .map(([name, value]) => {
    const type = typeof value === 'string' ? 'string' : 'list(string)'
    return `variable "${name}" {\n  type = ${type}\n  sensitive = ${name.endsWith('_key') && name !== 'ssh_public_key'}\n}`
  })
  .join('\n')}
module "deployment" {
  source = "./infra/local-deployment"
${Object.keys(without)
  .map(name => `  ${name} = var.${name}`)
  .join('\n')}
}
output "load_balancer_ip" {
  value = module.deployment.load_balancer_ip
}
output "control_plane_ip" {
  value = module.deployment.control_plane_ip
}
output "details" {
  value = module.deployment.details
}
`

/** Both keys, and what could be guessed from: no part of either is anywhere in what Terraform keeps. */
function expectNoKey(kept: string): void {
  expect(kept).not.toContain(mark)
  for (const key of [accessKey, secretKey]) {
    expect(kept).not.toContain(Buffer.from(key).toString('base64').slice(0, 12))
    for (const algorithm of ['md5', 'sha1', 'sha256', 'sha512']) {
      expect(kept).not.toContain(createHash(algorithm).update(key).digest('hex'))
    }
  }
}

const steps = ['network', 'control_plane', 'first_boot', 'load_balancer'] as const
const full = (step: string): string => `module.deployment.terraform_data.${step}`

const dependenciesOf = (state: string, step: string): readonly string[] | undefined => {
  const { resources } = JSON.parse(state) as {
    resources: { name: string; instances: { dependencies?: string[] }[] }[]
  }
  const resource = resources.find(({ name }) => name === step)
  return resource?.instances[0]?.dependencies ?? (resource && [])
}

const refused = async ({ terraform }: Stage, why: string): Promise<void> => {
  const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
  expect(code, output).toBe(1)
  expect(flat(output)).toContain(why)
}

// The stage searches whatever any command says for the mark that both keys have.
withTerraform('the local deployment', () => {
  test('is applied in steps, by Terraform alone, with no key in the state, and then there is nothing left to do', async () => {
    const { directory, apply, outputs, terraform } = await stage({ folders, root, variables: withStorage })
    const { output: needed } = await terraform('providers', '-no-color')
    expect(new Set(needed.match(/provider\[[^\]]+\]/g))).toEqual(new Set(['provider[terraform.io/builtin/terraform]']))
    const output = await apply()
    expect([...output.matchAll(/terraform_data\.\w+: Creation complete/g)]).toHaveLength(steps.length)
    for (const [number, step] of steps.entries()) {
      expect(dependenciesOf(stateOf(directory), step)).toEqual(expect.arrayContaining(steps.slice(0, number).map(full)))
    }
    expectNoKey(stateOf(directory))
    expect(await outputs()).toEqual({
      load_balancer_ip: expect.stringMatching(/^127\.\d+\.\d+\.\d+$/),
      control_plane_ip: expect.stringMatching(/^127\.\d+\.\d+\.\d+$/),
      details: { object_storage_secret: 'hetzner-object-storage' },
    })
    const second = await terraform('plan', '-no-color', '-detailed-exitcode')
    expect(second.code, second.output).toBe(0)
    const gone = await terraform('destroy', '-auto-approve', '-no-color')
    expect(gone.code, gone.output).toBe(0)
    expectNoKey(readFileSync(join(directory, 'terraform.tfstate.backup'), 'utf8'))
  })

  test('needs no object storage; but some of it is none', async () => {
    const on = await stage({ folders, root, variables: without })
    await on.apply()
    expect((await on.outputs()).details).toEqual({ object_storage_secret: null })
    for (const [given, why] of [
      ['region', 'object_storage_bucket must have 3 to 63 characters'],
      ['bucket', 'object_storage_region must be fsn1, nbg1 or hel1'],
      ['access_key', 'object_storage_secret_key must have at least 32 characters'],
      ['secret_key', 'object_storage_access_key must have at least 16 characters'],
    ] as const) {
      const name = `object_storage_${given}` as const
      on.set({ ...without, [name]: withStorage[name] })
      await refused(on, why)
    }
  })

  test('refuses a secret that lacks a value, before anything is made', async () => {
    const on = await stage({ folders, root, variables: withStorage })
    const file = join(on.top, 'infra/first-boot-secret/secret.tf')
    alter(file, 's3-secret-key: ', 's3-secret-key: "" # ')
    await refused(on, 'must have the five object storage values')
    expect(existsSync(join(on.directory, 'terraform.tfstate'))).toBe(false)
  })

  test('needs each input of the interface', async () => {
    const on = await stage({ folders, root, variables: withStorage })
    alter(join(on.top, 'main.tf'), '  object_storage_region = var.object_storage_region\n', '')
    await refused(on, 'The argument "object_storage_region" is required')
  })
})
