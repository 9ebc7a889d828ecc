import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingApiServer, startApiServer } from '@pool/test-kit/kubernetes/api-server.ts'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { createModuleFixture, repository, SECRET_MARK } from './support/module-fixture.ts'
import { withTerraform } from './support/terraform.ts'

interface CloudConfig {
  readonly write_files: readonly { readonly content: string }[]
  readonly runcmd: readonly (readonly string[])[]
}

const example = {
  region: 'fsn1',
  bucket: 'catalyst-acme',
  access_key: 'access-key-01234',
  secret_key: 'secret-key-0123456789-0123456789',
}

const hasCloudInit = spawnSync('cloud-init', ['--version']).status === 0
// .ci/run installs neither: cloud-init would configure the machine when it boots.
const missingCloudInit = hasCloudInit ? undefined : 'the cloud-config is not checked: install cloud-init'
for (const missing of [missingCloudInit, missingApiServer]) if (missing) process.stderr.write(`Skipped: ${missing}\n`)

/** The cloud-config of the example, and the file that it writes. */
const renderExample = async () => {
  const { apply, outputs } = await createModuleFixture({ folders, rootModule: root, variables: { all: { example } } })
  await apply()
  const { example: [, cloudConfig = ''] = [] } = (await outputs()).all as Record<string, string[]>
  return { cloudConfig, content: (parse(cloudConfig) as CloudConfig).write_files[0]?.content ?? '' }
}

const NAMESPACE = 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: flux-system\n'

/** Each has three random values; the region is one of three. */
const SETS = 34
const folders = ['infra/first-boot-secret', 'infra/object-storage-inputs'] as const

interface Inputs {
  readonly region: string
  readonly bucket: string
  readonly access_key: string
  readonly secret_key: string
}

/** Texts with a special meaning in YAML, Terraform, a shell, Jinja or cloud-init. */
const traps = [
  ...[
    '"',
    "'",
    '\\',
    '\\n',
    '\\u0041',
    '${',
    '{a}',
    '%{',
    '%{if}',
    '{{',
    '{%',
    '$(',
    '`',
    '#',
    ':',
    '&a',
    '*a',
    '!!',
    '|',
  ],
  ...[
    '>-',
    '%YAML',
    '@',
    ',',
    '[',
    ']',
    '{',
    '}',
    '---',
    '...',
    '- ',
    '? ',
    '<',
    '=',
    '~',
    'yes',
    'No',
    'null',
    'true',
    '0x1',
  ],
  ...['0o7', '1e3', '.inf', '1_000', '12:30', '2026-11-21', '<<', '#cloud-config'],
].map(trap => trap.trim())

const visible = fc.integer({ min: 33, max: 126 }).map(code => String.fromCharCode(code))
const text = (minLength: number) =>
  fc
    .array(fc.oneof(visible, fc.constantFrom(...traps)), { minLength, maxLength: minLength + 24 })
    .map(parts => parts.join(''))
const lower = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789')

const inputs: fc.Arbitrary<Inputs> = fc.record({
  region: fc.constantFrom('fsn1', 'nbg1', 'hel1'),
  // A bucket name may consist of digits or look like a number with an exponent.
  bucket: fc.array(lower, { minLength: 3, maxLength: 60 }).map(parts => parts.join('')),
  access_key: text(16),
  // Also one trap repeated, so that the whole value looks like a number or a sequence of markers.
  secret_key: fc.oneof(
    text(32),
    fc.constantFrom(...traps).map(trap => trap.repeat(32)),
  ),
})

/** One apply with one module for each set of inputs. */
const root = `
variable "all" {
  type = map(object({ region = string, bucket = string, access_key = string, secret_key = string }))
}
module "secret" {
  source   = "./infra/first-boot-secret"
  for_each = var.all

  object_storage_provider   = "hetzner"
  object_storage_domain     = "storage.test"
  object_storage_region     = each.value.region
  object_storage_bucket     = each.value.bucket
  object_storage_access_key = each.value.access_key
  object_storage_secret_key = each.value.secret_key
}
output "all" {
  value     = { for key, secret in module.secret : key => [secret.manifest, secret.cloud_config] }
  sensitive = true
}
`

const expected = ({ region, bucket, access_key, secret_key }: Inputs) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'hetzner-object-storage', namespace: 'flux-system' },
  type: 'Opaque',
  stringData: {
    's3-endpoint': `https://${region}.storage.test`,
    's3-region': region,
    's3-bucket': bucket,
    's3-access-key': access_key,
    's3-secret-key': secret_key,
  },
})

withTerraform('the first-boot secret', () => {
  test(`of ${3 * SETS} random valid values survives cloud-init and parsing as YAML 1.1 and 1.2`, async () => {
    const all = Object.fromEntries(fc.sample(inputs, SETS).map((set, number) => [String(number), set]))
    const { apply, outputs } = await createModuleFixture({ folders, rootModule: root, variables: { all } })
    await apply()
    const rendered = Object.entries((await outputs()).all as Record<string, [string, string]>)
    expect(rendered).toHaveLength(SETS)
    for (const [number, [manifest, cloudConfig]] of rendered) {
      const wanted = expected(all[number] as Inputs)
      // Kubernetes and cloud-init read YAML 1.1.
      for (const version of ['1.1', '1.2'] as const) {
        expect(cloudConfig.startsWith('#cloud-config\n')).toBe(true)
        // cloud-init ignores other keys without an error.
        const { write_files, runcmd, ...unknown } = parse(cloudConfig, { version }) as CloudConfig
        expect(unknown).toEqual({})
        const [file, ...others] = write_files
        expect(others).toEqual([])
        expect(runcmd[0]?.at(-1)).toMatch(
          /; rm -f \/var\/lib\/rancher\/k3s\/server\/manifests\/hetzner-object-storage\.yaml$/,
        )
        expect(file).toEqual({
          path: '/var/lib/rancher/k3s/server/manifests/hetzner-object-storage.yaml',
          owner: 'root:root',
          permissions: '0600',
          content: `${NAMESPACE}---\n${manifest}`,
        })
        const [, secret] = parseAllDocuments(file?.content ?? '', { version })
        expect(secret?.toJS()).toEqual(wanted)
      }
    }
  })

  test('is read by the example of a registry and of a backup: every key exists', async () => {
    const { content } = await renderExample()
    const secret = parseAllDocuments(content)[1]?.toJS() ?? {}
    for (const file of ['registry', 'backup']) {
      const text = readFileSync(join(repository, `examples/hetzner/cluster/${file}.yaml`), 'utf8')
      const references = [...text.matchAll(/secretKeyRef: \{ name: (\S+), key: (\S+) \}/g)]
      expect(references.map(([, name]) => name)).toEqual(Array(5).fill(secret.metadata.name))
      const keys = references.map(([, , key]) => key)
      expect(keys.toSorted()).toEqual(Object.keys(secret.stringData).toSorted())
    }
  })

  test.skipIf(missingCloudInit !== undefined)('has the schema of cloud-init', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloud-config-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'user-data'), (await renderExample()).cloudConfig)
    const { status, stdout, stderr } = spawnSync('cloud-init', ['schema', '--config-file', join(folder, 'user-data')])
    expect(status, `${stdout}${stderr}`).toBe(0)
  })

  test.skipIf(missingApiServer !== undefined)(
    'is accepted by an API server, with the examples that read it',
    async () => {
      const server = await startApiServer()
      onTestFinished(() => server.stop())
      const examples = ['registry', 'backup'].map(file =>
        readFileSync(join(repository, `examples/hetzner/cluster/${file}.yaml`), 'utf8'),
      )
      for (const text of [(await renderExample()).content, ...examples]) {
        const { code, stderr } = await server.kubectl(['apply', '--validate=strict', '--filename=-'], text)
        expect(code, stderr).toBe(0)
      }
    },
  )

  test('is completely sensitive and rejects invalid keys', async () => {
    const variables = {
      object_storage_provider: 'hetzner',
      object_storage_region: 'fsn1',
      object_storage_bucket: 'catalyst-acme',
      object_storage_access_key: `${SECRET_MARK}-ACCES`,
      object_storage_secret_key: SECRET_MARK.repeat(4),
    }
    // The fixture searches the output for the mark.
    const { set, apply, terraform } = await createModuleFixture({ folders, variables })
    expect(await apply()).toContain('cloud_config = <sensitive>')
    for (const [name, value, expectedError] of [
      ['access_key', '', 'at least 16'],
      ['secret_key', '<redacted>', 'at least 32'],
      ['secret_key', `${SECRET_MARK.repeat(4)}\n  key: value`, 'visible ASCII'],
      ['region', SECRET_MARK, 'fsn1, nbg1 or hel1'],
    ]) {
      set({ ...variables, [`object_storage_${name}`]: value })
      const { code, output } = await terraform('plan', '-no-color')
      expect(code, output).toBe(1)
      expect(output).toContain(expectedError)
    }
  })
})
