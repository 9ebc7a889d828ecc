import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ObjectStorage } from '../src/memory-store.ts'
import { minio } from '../src/minio.ts'
import { accessKey, bucketName, inputs, secretKey } from './fixtures/bucket-fixture.ts'
import {
  collapseWhitespace,
  createModuleFixture,
  readState,
  repository,
  SECRET_MARK,
} from './fixtures/module-fixture.ts'
import { withTerraform } from './fixtures/with-terraform.ts'

const modules = ['object-storage-bucket', 'object-storage-inputs', 'first-boot-secret', 'local-deployment']
const variables = {
  ...inputs,
  deployment_id: '0c6b9d5e-8f0b-4e8a-9a3f-1d2c3b4a5f60',
  org_name: 'Acme',
  org_email: 'ops@acme.example',
  sovereign_fqdn: 'acme.pool.test',
  region: 'fsn1',
  ssh_public_key: 'ssh-ed25519 AAAA ops@acme',
  provider_names: ['hetzner'],
  object_storage_provider: 'hetzner',
}

const readVariables = (folder: string): string[] =>
  [
    ...readFileSync(join(repository, folder, 'variables.tf'), 'utf8').matchAll(
      /^variable "(\w+)" \{\n {2}type +(.*)$/gm,
    ),
  ].map(([, name, type]) => `${name} ${type}`)

test('the example for Hetzner has the variables of a deployment module', () => {
  expect(readVariables('examples/hetzner')).toEqual(readVariables('infra/local-deployment'))
})

withTerraform('the example for Hetzner', () => {
  test.each([
    ['in its place', false],
    ['copied by the commands of its README', true],
  ])('creates the bucket and the secret, and is protected: %s', async (_, isCopied) => {
    const storage = new ObjectStorage()
    storage.users.set(accessKey, secretKey)
    const [copy = ''] = readFileSync(join(repository, 'examples/hetzner/README.md'), 'utf8').match(/^cp -r[^`]+/m) ?? []
    const { terraform, apply, directory, outputs } = await createModuleFixture({
      folders: ['examples/hetzner', ...modules.map(name => `infra/${name}`)],
      variables,
      provider: () => minio(connection => storage.connect(connection)),
      change(directory) {
        if (!isCopied) return
        execFileSync('sh', ['-ec', copy], { cwd: join(directory, '../..') })
        execFileSync('sh', ['-ec', 'rm -r examples/hetzner infra && mv my-module examples/hetzner'], {
          cwd: join(directory, '../..'),
        })
      },
    })
    const valid = await terraform('validate', '-no-color')
    expect(valid.code, valid.output).toBe(0)
    await apply()
    expect([...storage.buckets.keys()]).toEqual([bucketName])
    expect(readState(directory)).not.toContain(SECRET_MARK)
    const { load_balancer_ip, details } = await outputs()
    expect(load_balancer_ip).toMatch(/^198\.1[89]\./)
    expect(details).toEqual({ object_storage_endpoint: 'https://fsn1.storage.test', object_storage_bucket: bucketName })
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
    const destroyed = await terraform('destroy', '-auto-approve', '-no-color')
    expect(destroyed.code, destroyed.output).toBe(1)
    expect(collapseWhitespace(destroyed.output)).toContain('lifecycle.prevent_destroy set')
  })
})
