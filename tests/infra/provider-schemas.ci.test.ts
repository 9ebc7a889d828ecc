import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ObjectStorage } from '@pool/test-kit/terraform/memory-store.ts'
import { minio } from '@pool/test-kit/terraform/minio.ts'
import { startProvider } from '@pool/test-kit/terraform/provider.ts'
import { findProviderEnvironment, usesRealProviders } from '@pool/test-kit/terraform/real-providers.ts'
import type { Provider } from '@pool/test-kit/terraform/resource.ts'
import { expect, onTestFinished, test } from 'vitest'
import { Account } from './support/account.ts'
import { cloudflare } from './support/cloudflare.ts'
import { run, withTerraform } from './support/terraform.ts'

const doubles: readonly Provider[] = [
  cloudflare(new Account(), tmpdir()),
  minio(connection => new ObjectStorage().connect(connection)),
]

/** The printed versions of the real providers, and what identifies their schemas: see `toFingerprint`. */
const versions = { cloudflare: '5.19.1', minio: '3.11.1' }
const fingerprints = {
  'cloudflare/cloudflare': '8e3d7861f8be8bed',
  cloudflare_workers_kv_namespace: '28185c50f2bdea4c',
  cloudflare_workers_script: '5b42ced38a9c4dba',
  cloudflare_workers_script_subdomain: 'ea406f20a631272d',
  cloudflare_workers_custom_domain: '28bff4808cf519f0',
  'data cloudflare_workers_scripts': 'd64737ce8074017c',
  'aminueza/minio': '54f8a57bf539a77b',
  minio_s3_bucket: '6868fbaa9074043c',
}

/** Starts Terraform in a new directory with both providers, the doubles or with REAL_PROVIDERS=1 the real ones. */
const createSite = async (resources: string) => {
  const directory = mkdtempSync(join(tmpdir(), 'provider-schemas-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  writeFileSync(
    join(directory, 'main.tf'),
    `terraform {
  required_providers {
    cloudflare = { source = "cloudflare/cloudflare", version = "${versions.cloudflare}" }
    minio      = { source = "aminueza/minio", version = "${versions.minio}" }
  }
}
`,
  )
  writeFileSync(join(directory, 'resources.tf'), resources)
  let env: Record<string, string> = { HOME: directory }
  if (usesRealProviders) {
    env = { ...env, ...findProviderEnvironment() }
  } else {
    const running = await Promise.all(doubles.map(startProvider))
    onTestFinished(() => {
      for (const { stop } of running) stop()
    })
    const addresses: object[] = running.map(({ reattach }) => JSON.parse(reattach))
    env.TF_REATTACH_PROVIDERS = JSON.stringify(Object.assign({}, ...addresses))
  }
  const terraform = (...args: string[]) => run(directory, args, env)
  const { code, output } = await terraform('init', '-no-color')
  expect(code, output).toBe(0)
  return terraform
}

const sortKeys = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).filter(([name]) => !/^description|^deprecation_message/.test(name))
  return Object.fromEntries(
    entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, item]) => [name, sortKeys(item)]),
  )
}

/** Of a printed schema: types, required, optional, computed, sensitive and deprecated, without the descriptions. */
const toFingerprint = (schema: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(sortKeys(schema)))
    .digest('hex')
    .slice(0, 16)

interface PrintedSchemas {
  readonly provider_schemas: Record<
    string,
    { provider: unknown; resource_schemas: Record<string, unknown>; data_source_schemas?: Record<string, unknown> }
  >
}

const thisFile = JSON.stringify(import.meta.filename)

/** Combinations that only the provider rejects, at validation. */
const combinations: readonly { readonly type: string; readonly title: string; readonly body: string }[] = [
  {
    type: 'cloudflare_workers_script',
    title: 'without content',
    body: '  script_name = "sample"\n',
  },
  {
    type: 'cloudflare_workers_script',
    title: 'with two contents',
    body: `  script_name = "sample"\n  content = "sample"\n  content_file = ${thisFile}\n`,
  },
  {
    type: 'cloudflare_workers_script',
    title: 'with a file without its hash',
    body: `  script_name = "sample"\n  content_file = ${thisFile}\n`,
  },
  {
    type: 'cloudflare_workers_script',
    title: 'with the hash of another content',
    body: `  script_name = "sample"\n  content_file = ${thisFile}\n  content_sha256 = "${'0'.repeat(64)}"\n`,
  },
  {
    type: 'minio_s3_bucket',
    title: 'with name and prefix',
    body: '  bucket = "sample"\n  bucket_prefix = "sample"\n',
  },
  { type: 'minio_s3_bucket', title: 'with a long name', body: `  bucket = "${'a'.repeat(64)}"\n` },
  { type: 'minio_s3_bucket', title: 'with a long prefix', body: `  bucket_prefix = "${'a'.repeat(38)}"\n` },
  { type: 'minio_s3_bucket', title: 'with a fraction as quota', body: '  quota = 1.5\n' },
]

withTerraform(`the schemas of ${usesRealProviders ? 'the real providers' : 'the doubles'}`, () => {
  test('are printed as those of the real providers', async () => {
    const terraform = await createSite('')
    const { code, output } = await terraform('providers', 'schema', '-json')
    expect(code, output).toBe(0)
    const { provider_schemas: printed } = JSON.parse(output) as PrintedSchemas
    const found = doubles.flatMap(({ source, resources, dataSources = {} }) => {
      const schemas = Object.entries(printed).find(([address]) => address.endsWith(`/${source}`))?.[1]
      return [
        [source, toFingerprint(schemas?.provider)],
        ...Object.keys(resources).map(type => [type, toFingerprint(schemas?.resource_schemas[type])]),
        ...Object.keys(dataSources).map(type => [`data ${type}`, toFingerprint(schemas?.data_source_schemas?.[type])]),
      ]
    })
    expect(Object.fromEntries(found)).toEqual(fingerprints)
  })

  test('reject the combinations that only the provider checks, and nothing valid', async () => {
    const cases = [
      { type: 'cloudflare_workers_script', title: 'valid', body: '  script_name = "sample"\n  content = "sample"\n' },
      { type: 'minio_s3_bucket', title: 'valid', body: '  bucket = "sample"\n' },
      ...combinations,
    ]
    const terraform = await createSite(
      cases.map(({ type, body }, index) => `resource "${type}" "m${index}" {\n${body}}\n`).join(''),
    )
    const { output } = await terraform('validate', '-json')
    const { diagnostics } = JSON.parse(output) as { diagnostics: { severity: string; address?: string }[] }
    const rejected = diagnostics.filter(({ severity }) => severity === 'error').map(({ address }) => address)
    expect([...new Set(rejected)].toSorted()).toEqual(
      cases.flatMap(({ type, title }, index) => (title === 'valid' ? [] : [`${type}.m${index}`])).toSorted(),
    )
  })
})
