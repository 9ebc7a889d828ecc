import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ObjectStorage } from '@pool/test-kit/terraform/memory-store.ts'
import { minio } from '@pool/test-kit/terraform/minio.ts'
import { startProvider } from '@pool/test-kit/terraform/provider.ts'
import { findProviderEnvironment, usesRealProviders } from '@pool/test-kit/terraform/real-providers.ts'
import type { Provider } from '@pool/test-kit/terraform/resource.ts'
import { type Attribute, isNested, type Schema } from '@pool/test-kit/terraform/schema.ts'
import { expect, onTestFinished, test } from 'vitest'
import { Account } from './support/account.ts'
import { cloudflare } from './support/cloudflare.ts'
import { run } from './support/terraform.ts'
import { withTerraform } from './support/with-terraform.ts'

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

interface Mutation {
  readonly title: string
  /** The body of the resource. */
  readonly body: string
}

const render = (attributes: Readonly<Record<string, string>>): string =>
  Object.entries(attributes)
    .map(([name, value]) => `  ${name} = ${value}\n`)
    .join('')

const renderObject = (attributes: Readonly<Record<string, string>>): string =>
  `{ ${Object.entries(attributes)
    .map(([name, value]) => `${name} = ${value}`)
    .join(', ')} }`

const sample = ({ type }: Attribute): string => {
  if (type === 'bool') return 'true'
  if (type === 'number') return '1'
  if (type === 'string' || type === 'dynamic') return '"sample"'
  if (!isNested(type)) return '["sample"]'
  const value = renderObject(sampleRequired(type.attributes))
  return type.nesting === 'single' ? value : `[${value}]`
}

/** What a resource needs beyond the required attributes of its schema: the provider itself checks it. */
const needed: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  cloudflare_workers_script: { content: '"sample"' },
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

const sampleRequired = (schema: Schema): Record<string, string> =>
  Object.fromEntries(
    Object.entries(schema).flatMap(([name, attribute]) => (attribute.required ? [[name, sample(attribute)]] : [])),
  )

/** No value that Terraform can convert to the type. */
const wrongValue = ({ type }: Attribute): string => (type === 'string' ? '{}' : '"wrong"')

/** Each attribute with a value of a wrong type, each required one missing, and each that only the provider sets with a value. */
const mutate = (
  schema: Schema,
  wrap: (attributes: Record<string, string>) => string,
  path = '',
  more: Readonly<Record<string, string>> = {},
): Mutation[] => {
  const required = { ...sampleRequired(schema), ...more }
  return Object.entries(schema).flatMap(([name, attribute]): Mutation[] => {
    const title = path + name
    const { type } = attribute
    const mutations: Mutation[] = []
    if (type !== 'dynamic') {
      mutations.push({ title: `${title}: wrong type`, body: wrap({ ...required, [name]: wrongValue(attribute) }) })
    }
    if (attribute.required) {
      const { [name]: _, ...others } = required
      mutations.push({ title: `${title}: missing`, body: wrap(others) })
    }
    if (attribute.computed && !attribute.optional) {
      mutations.push({ title: `${title}: read-only`, body: wrap({ ...required, [name]: sample(attribute) }) })
    } else if (isNested(type)) {
      const nest = (attributes: Record<string, string>) => {
        const value = renderObject(attributes)
        return wrap({ ...required, [name]: type.nesting === 'single' ? value : `[${value}]` })
      }
      mutations.push(...mutate(type.attributes, nest, `${title}.`))
    }
    return mutations
  })
}

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

  test('reject a mutation of every attribute, and nothing valid', async () => {
    const cases = doubles.flatMap(({ resources }) =>
      Object.entries(resources).flatMap(([type, { schema }]) => [
        { type, title: 'valid', body: render({ ...sampleRequired(schema), ...needed[type] }) },
        {
          type,
          title: 'unknown attribute',
          body: render({ ...sampleRequired(schema), ...needed[type], unknown_attribute: '1' }),
        },
        ...mutate(schema, render, '', needed[type]).map(mutation => ({ type, ...mutation })),
      ]),
    )
    cases.push(...combinations)
    const lines: string[] = []
    const starts = cases.map(({ type, body }, index) => {
      lines.push(...`resource "${type}" "m${index}" {\n${body}}`.split('\n'))
      return lines.length
    })
    const terraform = await createSite(`${lines.join('\n')}\n`)
    const { output } = await terraform('validate', '-json')
    const { diagnostics } = JSON.parse(output) as {
      diagnostics: { severity: string; summary: string; range?: { start: { line: number } } }[]
    }
    const rejected = new Set(
      diagnostics
        .filter(({ severity }) => severity === 'error')
        .map(({ range }) => starts.findIndex(last => (range?.start.line ?? 0) <= last)),
    )
    const toNames = (isWanted: (index: number) => boolean) =>
      cases.flatMap(({ type, title }, index) => (isWanted(index) ? [`${type} ${title}`] : []))
    expect(toNames(index => !rejected.has(index))).toEqual(toNames(index => cases[index]?.title === 'valid'))
    // Fails if the cases are not generated, for example because a schema is empty.
    expect(cases.length).toBe(229)
  })
})
