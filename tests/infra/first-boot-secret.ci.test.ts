import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { createModuleFixture, SECRET_MARK } from './support/module-fixture.ts'
import { withTerraform } from './support/terraform.ts'

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
        const [file, ...others] = (parse(cloudConfig, { version }) as { write_files: { content: string }[] })
          .write_files
        expect(others).toEqual([])
        expect(file).toEqual({
          path: '/var/lib/first-boot/hetzner-object-storage.yaml',
          owner: 'root:root',
          permissions: '0600',
          content: manifest,
        })
        expect(parse(file?.content ?? '', { version })).toEqual(wanted)
      }
    }
  })

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
