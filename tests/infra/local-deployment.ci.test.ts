import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  collapseWhitespace,
  createModuleFixture,
  type ModuleFixture,
  readState,
  replaceInFile,
  SECRET_MARK,
} from './support/module-fixture.ts'
import { withTerraform } from './support/terraform.ts'

const accessKey = `${SECRET_MARK}-ACCES`
const secretKey = `${SECRET_MARK}-SECRET`.padEnd(32, 'x')

const withoutStorage = {
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
  ...withoutStorage,
  object_storage_region: 'fsn1',
  object_storage_bucket: 'catalyst-acme-pool-test',
  object_storage_access_key: accessKey,
  object_storage_secret_key: secretKey,
}

const folders = ['infra/local-deployment', 'infra/first-boot-secret', 'infra/object-storage-inputs'] as const

/** A root module that calls the module, as the API does. */
const root = `
${Object.entries(withoutStorage)
  .map(([name, value]) => {
    const type = typeof value === 'string' ? 'string' : 'list(string)'
    return `variable "${name}" {\n  type = ${type}\n  sensitive = ${name.endsWith('_key') && name !== 'ssh_public_key'}\n}`
  })
  .join('\n')}
module "deployment" {
  source = "./infra/local-deployment"
${Object.keys(withoutStorage)
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

/** Neither a key nor a value that allows guessing one (Base64, hash) is in the text. */
function expectNoKey(text: string): void {
  expect(text).not.toContain(SECRET_MARK)
  for (const key of [accessKey, secretKey]) {
    expect(text).not.toContain(Buffer.from(key).toString('base64').slice(0, 12))
    for (const algorithm of ['md5', 'sha1', 'sha256', 'sha512']) {
      expect(text).not.toContain(createHash(algorithm).update(key).digest('hex'))
    }
  }
}

const steps = ['network', 'control_plane', 'first_boot', 'load_balancer'] as const
const toAddress = (step: string): string => `module.deployment.terraform_data.${step}`

const readDependencies = (state: string, step: string): readonly string[] | undefined => {
  const { resources } = JSON.parse(state) as {
    resources: { name: string; instances: { dependencies?: string[] }[] }[]
  }
  const resource = resources.find(({ name }) => name === step)
  return resource?.instances[0]?.dependencies ?? (resource && [])
}

const expectRejected = async ({ terraform }: ModuleFixture, expectedError: string): Promise<void> => {
  const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
  expect(code, output).toBe(1)
  expect(collapseWhitespace(output)).toContain(expectedError)
}

// The fixture searches the output of every command for the mark, which both keys contain.
withTerraform('the local deployment', () => {
  test('is applied in steps without a downloaded provider and without a key in the state; the next plan is empty', async () => {
    const { directory, apply, outputs, terraform } = await createModuleFixture({
      folders,
      rootModule: root,
      variables: withStorage,
    })
    const { output: providers } = await terraform('providers', '-no-color')
    expect(new Set(providers.match(/provider\[[^\]]+\]/g))).toEqual(
      new Set(['provider[terraform.io/builtin/terraform]']),
    )
    const output = await apply()
    expect([...output.matchAll(/terraform_data\.\w+: Creation complete/g)]).toHaveLength(steps.length)
    for (const [number, step] of steps.entries()) {
      expect(readDependencies(readState(directory), step)).toEqual(
        expect.arrayContaining(steps.slice(0, number).map(toAddress)),
      )
    }
    expectNoKey(readState(directory))
    expect(await outputs()).toEqual({
      load_balancer_ip: expect.stringMatching(/^198\.1[89]\.\d+\.\d+$/),
      control_plane_ip: expect.stringMatching(/^198\.1[89]\.\d+\.\d+$/),
      details: { object_storage_secret: 'hetzner-object-storage' },
    })
    const second = await terraform('plan', '-no-color', '-detailed-exitcode')
    expect(second.code, second.output).toBe(0)
    const destroyed = await terraform('destroy', '-auto-approve', '-no-color')
    expect(destroyed.code, destroyed.output).toBe(0)
    expectNoKey(readFileSync(join(directory, 'terraform.tfstate.backup'), 'utf8'))
  })

  test('does not require object storage, but rejects an incomplete configuration of it', async () => {
    const fixture = await createModuleFixture({ folders, rootModule: root, variables: withoutStorage })
    await fixture.apply()
    expect((await fixture.outputs()).details).toEqual({ object_storage_secret: null })
    for (const [given, expectedError] of [
      ['region', 'object_storage_bucket must have 3 to 63 characters'],
      ['bucket', 'object_storage_region must be fsn1, nbg1 or hel1'],
      ['access_key', 'object_storage_secret_key must have at least 32 characters'],
      ['secret_key', 'object_storage_access_key must have at least 16 characters'],
    ] as const) {
      const name = `object_storage_${given}` as const
      fixture.set({ ...withoutStorage, [name]: withStorage[name] })
      await expectRejected(fixture, expectedError)
    }
  })

  test('rejects a secret with a missing value before it creates anything', async () => {
    const fixture = await createModuleFixture({ folders, rootModule: root, variables: withStorage })
    const file = join(fixture.root, 'infra/first-boot-secret/secret.tf')
    replaceInFile(file, 's3-secret-key: ', 's3-secret-key: "" # ')
    await expectRejected(fixture, 'must have the five object storage values')
    expect(existsSync(join(fixture.directory, 'terraform.tfstate'))).toBe(false)
  })

  test('requires every input of the interface', async () => {
    const fixture = await createModuleFixture({ folders, rootModule: root, variables: withStorage })
    replaceInFile(join(fixture.root, 'main.tf'), '  object_storage_region = var.object_storage_region\n', '')
    await expectRejected(fixture, 'The argument "object_storage_region" is required')
  })
})
