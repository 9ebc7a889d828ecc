import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { toRootModule, writeRootModule, writeStateModule } from './workdir.ts'

const template = (text: string) => `$\{${text}}`

test('the root module contains names and templates, but no values', () => {
  const text = toRootModule({
    source: `../${template('a')}/module`,
    backend: {
      type: 's3',
      settings: { path: template('b'), key: '{deployment}/x/{deployment}', list: ['{deployment}', 1], on: true },
    },
    stateKey: 'acme.pool.test',
    variables: ['region', 'provider_names'],
    secrets: ['object_storage_secret_key'],
  })
  expect(JSON.parse(text)).toEqual({
    terraform: {
      backend: {
        s3: {
          path: `$${template('b')}`,
          key: 'acme.pool.test/x/acme.pool.test',
          list: ['acme.pool.test', 1],
          on: true,
        },
      },
    },
    variable: {
      region: { type: 'string', sensitive: false },
      provider_names: { type: 'list(string)', sensitive: false },
      object_storage_secret_key: { type: 'string', sensitive: true },
    },
    module: {
      deployment: {
        source: `../${template('a')}/module`,
        region: template('var.region'),
        provider_names: template('var.provider_names'),
        object_storage_secret_key: template('var.object_storage_secret_key'),
      },
    },
    output: Object.fromEntries(
      ['load_balancer_ip', 'control_plane_ip', 'details'].map(name => [
        name,
        { value: template(`try(module.deployment.${name}, null)`) },
      ]),
    ),
  })
})

test('without variables there is no variable block', () => {
  const names = { variables: [], secrets: [] }
  const text = toRootModule({ source: './m', backend: { type: 'http', settings: {} }, stateKey: 'a.test', ...names })
  expect(Object.keys(JSON.parse(text))).toEqual(['terraform', 'module', 'output'])
})

test('an import names its provider in the root module, where OpenTofu looks for it', () => {
  const text = toRootModule({
    ...{ source: './m', backend: { type: 'http', settings: {} }, stateKey: 'a.test', variables: [], secrets: [] },
    bucketImport: {
      address: 'module.deployment.minio_s3_bucket.backups',
      type: 'minio_s3_bucket',
      provider: 'registry.opentofu.org/aminueza/minio',
      id: 'backups',
    },
  })
  expect(JSON.parse(text)).toMatchObject({
    terraform: {
      backend: { http: {} },
      required_providers: { minio: { source: 'registry.opentofu.org/aminueza/minio' } },
    },
    import: { to: 'module.deployment.minio_s3_bucket.backups', id: 'backups' },
  })
})

test('the lock file of the module chooses the providers of every operation, also of those on the state only', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'workdir-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const directories = { dataDir: join(folder, 'data'), moduleDir: join(folder, 'module') }
  await mkdir(directories.moduleDir)
  await writeFile(join(directories.moduleDir, '.terraform.lock.hcl'), '# versions\n')
  const location = { stateKey: 'a.test', backend: null }
  for (const write of [
    (path: string) => writeRootModule(path, directories, { ...location, variables: [], secrets: [] }),
    (path: string) => writeStateModule(path, directories, location),
  ]) {
    const workdir = await mkdtemp(join(folder, 'work-'))
    await write(workdir)
    expect(await readFile(join(workdir, '.terraform.lock.hcl'), 'utf8')).toBe('# versions\n')
  }
  await rm(join(directories.moduleDir, '.terraform.lock.hcl'))
  const workdir = await mkdtemp(join(folder, 'work-'))
  await writeStateModule(workdir, directories, location)
  await expect(readFile(join(workdir, '.terraform.lock.hcl'))).rejects.toThrow('ENOENT')
})
