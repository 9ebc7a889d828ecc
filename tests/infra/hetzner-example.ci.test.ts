import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HetznerProject, hcloud } from '@pool/test-kit/terraform/hcloud.ts'
import { ObjectStorage } from '@pool/test-kit/terraform/memory-store.ts'
import { minio } from '@pool/test-kit/terraform/minio.ts'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { accessKey, bucketName, inputs, secretKey } from './support/bucket-fixture.ts'
import {
  collapseWhitespace,
  createModuleFixture,
  readState,
  repository,
  SECRET_MARK,
} from './support/module-fixture.ts'
import { run, withTerraform } from './support/terraform.ts'

const modules = ['object-storage-bucket', 'object-storage-inputs', 'first-boot-secret']
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
  const all = readVariables('examples/hetzner')
  const passed = readVariables('infra/local-deployment')
  expect(all.slice(0, passed.length)).toEqual(passed)
  // Its own ones have a default.
  const text = readFileSync(join(repository, 'examples/hetzner/variables.tf'), 'utf8')
  expect(text.match(/^ {2}default/gm)).toHaveLength(all.length - passed.length)
})

const readme = readFileSync(join(repository, 'examples/hetzner/README.md'), 'utf8')
const [copy = ''] = readme.match(/^cp -r[^`]+/m) ?? []

/**
 * A mirror with versions of the provider for these platforms, and the variables by which Terraform uses it. Neither `init` nor
 * `providers lock` runs a provider.
 */
const createMirror = (directory: string, versions: readonly string[], platforms: readonly string[]) => {
  const mirror = join(directory, 'mirror')
  for (const registry of ['registry.terraform.io', 'registry.opentofu.org']) {
    for (const [source, version] of [
      ['hetznercloud/hcloud', '1.68.0'],
      ...versions.map(one => ['aminueza/minio', one]),
    ]) {
      for (const platform of platforms) {
        const folder = join(mirror, registry, source ?? '', version ?? '', platform)
        mkdirSync(folder, { recursive: true })
        const text = `#!/bin/false ${version} ${platform}\n`
        writeFileSync(join(folder, `terraform-provider-${source?.split('/')[1]}_v${version}`), text, { mode: 0o700 })
      }
    }
  }
  const file = join(directory, 'terraformrc')
  writeFileSync(file, `provider_installation {\n  filesystem_mirror {\n    path = ${JSON.stringify(mirror)}\n  }\n}\n`)
  return { mirror, environment: { HOME: directory, TF_CLI_CONFIG_FILE: file } }
}

withTerraform('the lock file of the example', () => {
  test('is made by the commands of its README, for four platforms and the newest permitted version', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'hetzner-lock-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    for (const folder of ['examples/hetzner', ...modules.map(name => `infra/${name}`)]) {
      cpSync(join(repository, folder), join(directory, folder), { recursive: true })
    }
    execFileSync('sh', ['-ec', copy], { cwd: directory })
    const platforms = ['linux_amd64', 'linux_arm64', 'darwin_amd64', 'darwin_arm64']
    const versions = ['3.5.0', '3.6.4', '3.11.1', '3.11.2', '3.38.0']
    const { mirror, environment } = createMirror(directory, versions, platforms)

    const commands = [...readme.matchAll(/^terraform (-chdir=.+)$/gm)].map(([, args = '']) => args.split(' '))
    expect(commands.map(args => args[1])).toEqual(['init', 'providers'])
    for (const args of commands) {
      // By default the command asks the registry, even if a mirror is configured.
      const more = args[1] === 'providers' ? [`-fs-mirror=${mirror}`] : []
      const { code, output } = await run(directory, [...args, ...more], environment)
      expect(code, output).toBe(0)
    }
    const file = join(directory, 'my-module/.terraform.lock.hcl')
    const lock = readFileSync(file, 'utf8')
    expect(lock.match(/(?<= version += ")[^"]+/g)).toEqual(['3.11.1', '1.68.0'])
    expect(lock.match(/(?<=constraints += ")[^"]+/g)).toEqual(['>= 3.6.4, < 3.11.2', '~> 1.68'])
    expect(new Set(lock.match(/"h1:[^"]+"/g)).size).toBe(2 * platforms.length)

    const again = await run(directory, ['-chdir=my-module', 'init', '-lockfile=readonly', '-no-color'], environment)
    expect(again.code, again.output).toBe(0)
    writeFileSync(file, lock.replaceAll(/"h1:.{8}/g, '"h1:AAAAAAAA'))
    rmSync(join(directory, 'my-module/.terraform'), { recursive: true })
    const other = await run(directory, ['-chdir=my-module', 'init', '-no-color'], environment)
    expect(other.code, other.output).toBe(1)
    expect(collapseWhitespace(other.output)).toMatch(/doesn't match any of the checksums/)
  })
})

/** The parts of user data, merged as cloud-init does with the lists appended. */
const mergeParts = (text: string): Record<string, readonly unknown[]> => {
  const [head = '', ...parts] = text.split('--part')
  expect(head).toContain('boundary="part"')
  const configs = parts.slice(0, -1).map(part => {
    expect(part).toMatch(/^\nContent-Type: text\/cloud-config\nX-Merge-Type: list\(append\)[^\n]*\n\n#cloud-config\n/)
    return parse(part.slice(part.indexOf('#'))) as Record<string, unknown[]>
  })
  const keys = [...new Set(configs.flatMap(Object.keys))]
  return Object.fromEntries(keys.map(key => [key, configs.flatMap(config => config[key] ?? [])]))
}

withTerraform('the example for Hetzner', () => {
  test.each([
    ['in its place', false],
    ['copied by the commands of its README', true],
  ])('creates the bucket, a machine with the secret and a load balancer, and is protected: %s', async (_, isCopied) => {
    const project = new HetznerProject()
    const storage = new ObjectStorage()
    storage.users.set(accessKey, secretKey)
    const { terraform, apply, directory, outputs } = await createModuleFixture({
      folders: ['examples/hetzner', ...modules.map(name => `infra/${name}`)],
      variables,
      provider: () => minio(connection => storage.connect(connection)),
      moreProviders: [hcloud(project)],
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
    const { load_balancer_ip, control_plane_ip, details } = await outputs()
    const find = (type: string) => [...project.resources].find(([key]) => key.startsWith(`${type} `))?.[1]
    expect([load_balancer_ip, control_plane_ip]).toEqual([
      find('hcloud_load_balancer')?.ipv4,
      find('hcloud_server')?.ipv4_address,
    ])
    const userData = mergeParts(project.userData[0] ?? '')
    expect(userData.write_files).toHaveLength(1)
    expect(userData.runcmd?.join()).toMatch(/first-boot-secret.*,sh,-c,curl -sfL https:\/\/get\.k3s\.io/)
    expect(userData.ssh_authorized_keys).toEqual([variables.ssh_public_key])
    expect(details).toEqual({ object_storage_endpoint: 'https://fsn1.storage.test', object_storage_bucket: bucketName })
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
    const destroyed = await terraform('destroy', '-auto-approve', '-no-color')
    expect(destroyed.code, destroyed.output).toBe(1)
    expect(collapseWhitespace(destroyed.output)).toContain('prevent_destroy set')
  })

  test('has room for two tenants with one SSH key in one project', async () => {
    const project = new HetznerProject()
    for (const [index, deployment_id] of [variables.deployment_id, 'f0e1d2c3-8f0b-4e8a-9a3f-1d2c3b4a5f60'].entries()) {
      const storage = new ObjectStorage()
      storage.users.set(accessKey, secretKey)
      const { apply } = await createModuleFixture({
        folders: ['examples/hetzner', ...modules.map(name => `infra/${name}`)],
        variables: { ...variables, deployment_id, sovereign_fqdn: `tenant-${index}.pool.test` },
        provider: () => minio(connection => storage.connect(connection)),
        moreProviders: [hcloud(project)],
      })
      await apply()
    }
    expect(project.userData).toHaveLength(2)
  })
})
