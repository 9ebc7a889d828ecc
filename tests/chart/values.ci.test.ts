import { execFile } from 'node:child_process'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listenOnLoopback } from '@pool/dev/ports'
import { missingPrograms, run } from '@pool/test-kit/kubernetes/programs.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import {
  chart,
  parseObjects,
  RELEASE,
  readFile,
  render,
  toSetArgs,
  toValuesArgs,
  type valueSets,
} from './support/chart.ts'
import { checks, findPodSecurityFaults } from './support/checks.ts'
import { findRestrictedV2Faults, restrictedV2 } from './support/openshift.ts'
import { findDeployments, toSecrets } from './support/pod.ts'
import { valueCases } from './support/value-table.ts'

const defaults = parse(readFile(join(chart, 'values.yaml')))
const schema = JSON.parse(readFile(join(chart, 'values.schema.json')))

/** The properties of a schema and of what it refers to; undefined: any. */
const toProperties = (each: typeof schema): Record<string, typeof schema> | undefined => {
  const referred = each.$ref ? toProperties(schema.$defs[each.$ref.split('/').at(-1)]) : undefined
  return each.properties || referred ? { ...each.properties, ...referred } : undefined
}

/** The paths of an object that both a schema and values describe, at which one of them has more. */
const findDifferences = (value: unknown, each: typeof schema, path: string): string[] => {
  const properties = toProperties(each)
  if (!properties || typeof value !== 'object' || value === null) return []
  const names = Object.keys(properties)
  const entries = Object.entries(value)
  return [
    ...entries.filter(([key]) => !names.includes(key)).map(([key]) => `${path}/${key} is not in the schema`),
    ...names.filter(key => entries.length > 0 && !(key in value)).map(key => `${path}/${key} has no default`),
    ...entries.flatMap(([key, field]) => findDifferences(field, properties[key] ?? {}, `${path}/${key}`)),
  ]
}

/** Every path of the values down to a depth. */
const listPaths = (value: unknown, depth: number, path: readonly string[] = []): string[][] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && depth > 0
    ? Object.entries(value).flatMap(([key, field]) => [[...path, key], ...listPaths(field, depth - 1, [...path, key])])
    : []

const toNull = (path: readonly string[]): object =>
  path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), null) as object

/** Whether the schema requires a path of values.yaml. */
const isRequired = (path: readonly string[]): boolean => {
  const parent = path.slice(0, -1).reduce((each, key) => toProperties(each)?.[key] ?? {}, schema)
  const referred = parent.$ref ? schema.$defs[parent.$ref.split('/').at(-1)].required : []
  return [...(parent.required ?? []), ...(referred ?? [])].includes(path.at(-1))
}

const GROUPS = 16

/** Newer than the first values, and not empty. */
const NEWER = ['serviceAccount', 'podSecurityContext', 'containerSecurityContext', 'revisionHistoryLimit', 'service']

/** Values without those that are newer or empty, unless the schema requires them. */
const removeNewer = (value: object, path: readonly string[] = []): object =>
  Object.fromEntries(
    Object.entries(value).flatMap(([key, field]) => {
      const isObject = typeof field === 'object' && !Array.isArray(field)
      const left = isObject ? removeNewer(field, [...path, key]) : field
      const isEmpty = typeof left === 'object' ? Object.keys(left).length === 0 : !left
      const isNewer = isEmpty || [...NEWER, 'operatorService', 'dashboard', 'test'].includes(key)
      return isNewer && !isRequired([...path, key]) ? [] : [[key, left]]
    }),
  )

describe.skipIf(shouldSkip(missingPrograms))('the values of the chart', () => {
  test.each(valueCases)('hold: $title', async ({ values, without, compare }) => {
    const objects = await render('three-replicas', toSetArgs(values))
    for (const { found, expected } of compare(objects)) {
      expect(found).not.toEqual([])
      expect(found).toEqual(expected)
    }
    const found = Object.entries(checks).flatMap(([name, check]) =>
      without.some(each => each === name) ? [] : check(objects, toSecrets('three-replicas')),
    )
    expect(found).toEqual([])
  })

  test('there are 60 sets', () => {
    expect(valueCases.length).toBeGreaterThanOrEqual(60)
  })

  test('values.yaml and the schema have the same values', () => {
    const unlike = findDifferences(defaults, schema, '').filter(
      path => !/^\/(global|api\/operatorService\/|witness\/service\/)|\/claims has/.test(path),
    )
    expect(unlike).toEqual([])
  })

  test('a value that is null is left out or rejected by the schema', async () => {
    const renderNull = (paths: readonly string[][]) =>
      render('three-replicas', toSetArgs(paths.map(path => toNull(path))))
    const paths = listPaths(defaults, 3)
    for (const path of paths.filter(isRequired)) await expect(renderNull([path])).rejects.toThrow('missing propert')
    // Together, paths that are far from each other hide no fault of each other. Without its files, a service does not start.
    const others = paths.filter(path => !isRequired(path) && path.at(-1) !== 'files')
    for (let group = 0; group < GROUPS; group += 1) {
      const objects = await renderNull(others.filter((_, index) => index % GROUPS === group))
      expect([checks.schema, checks.config].flatMap(check => check(objects, toSecrets('three-replicas')))).toEqual([])
    }
  })

  test('values of an older chart render the defaults of what they lack', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pool-values-'))
    await cp(chart, folder, { recursive: true })
    await writeFile(join(folder, 'values.yaml'), JSON.stringify(removeNewer(defaults)))
    expect(await render('three-replicas', [], folder)).toEqual(await render('three-replicas'))
    await rm(folder, { recursive: true })
  })

  const key = { name: 'a', key: 'b' }
  const smallest = {
    config: { DNSPROVIDER_MANAGED_DOMAINS: 'pool.example', DNSPROVIDER_KIND: 'cloudflare' },
    secrets: { PDM_DATABASE_URL: key, DNSPROVIDER_CLOUDFLARE_API_TOKEN: key },
  }

  test.each([
    ['a release that begins with a digit', '1pool', {}, 'set fullnameOverride'],
    ['a release with a dot', 'my.app', {}, 'set fullnameOverride'],
    ['a console without operators', RELEASE, { ingress: { enabled: true, hosts: ['a'] } }, 'PDM_OPERATOR_TOKENS is'],
  ])('rejects %s', async (_, release, values, message) => {
    const args = ['template', release, chart, ...toSetArgs([{ api: smallest }, { api: values }])]
    expect(await run('helm', args)).toMatchObject({ code: 1, stderr: expect.stringContaining(message) })
  })

  test('names have at most 63 characters, and none is there twice', async () => {
    const { stdout } = await run('helm', ['template', 'r'.repeat(53), chart, ...toValuesArgs('three-replicas')])
    const names = parseObjects(stdout).map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(names.filter(name => (name.split(' ')[1] ?? '').length > 63)).toEqual([])
    expect(new Set(names).size).toBe(names.length)
    expect(names).toContain(`Service ${'r'.repeat(50)}-api-operator`)
    expect(names).toContain(`Deployment ${'r'.repeat(53)}-api`)
  })

  test('helm test asks both services, in a pod that their network policies allow', async () => {
    const { stdout } = await run('helm', ['template', RELEASE, chart, ...toValuesArgs('three-replicas')])
    const pod = parseObjects(stdout).filter(({ kind }) => kind === 'Pod')
    expect(checks.schema(pod)).toEqual([])
    expect(findPodSecurityFaults(pod[0]?.spec)).toEqual([])
    expect(pod[0]?.metadata.labels).toMatchObject({ 'pool-allocation/client': 'true' })
    const [script, ...urls] = pod[0]?.spec.containers[0].args ?? []
    expect(urls).toEqual(['http://pool-allocation-api:8080/readyz', 'http://pool-allocation-witness:8080/healthz'])
    const server = createServer(({ url }, response) => response.writeHead(url === '/ready' ? 200 : 503).end())
    const origin = `http://127.0.0.1:${await listenOnLoopback(server)}`
    const ask = (...paths: string[]) =>
      new Promise(resolve => {
        const args = ['-e', script, ...paths.map(path => `${origin}${path}`)]
        execFile(process.execPath, args, error => resolve(error?.code ?? 0))
      })
    expect(await ask('/ready', '/ready')).toBe(0)
    expect(await ask('/ready', '/other')).toBe(1)
    await new Promise(resolve => server.close(resolve))
    expect(await ask('/ready')).toBe(1)
  })

  test('the notes name the console, and who may reach it', async () => {
    const notes = async (ingress: object) => {
      const args = ['install', RELEASE, chart, '--dry-run=client', ...toValuesArgs('one-replica')]
      const { stdout, stderr } = await run('helm', [...args, ...toSetArgs([{ api: { ingress } }])])
      expect(stderr).toBe('')
      return stdout.split('NOTES:')[1]
    }
    expect(await notes({})).toMatch(/service\/pool-allocation-api-operator 8081.*networkPolicy.operators is empty/s)
    const withIngress = await notes({ enabled: true, hosts: ['console.example'] })
    expect(withIngress).toContain('https://console.example/console')
    expect(withIngress).not.toContain('port-forward')
  })
})

describe.skipIf(shouldSkip(missingPrograms))('restricted-v2 of OpenShift', async () => {
  const pods = async (set: (typeof valueSets)[number]) =>
    findDeployments(await render(set)).map(({ spec }) => spec.template.spec)

  test('accepts the pods of values/openshift.yaml, and not those of the defaults', async () => {
    expect((await pods('openshift')).map(findRestrictedV2Faults)).toEqual([[], []])
    const ids = ['this runAsUser is not allowed', 'this fsGroup is not allowed']
    expect((await pods('three-replicas')).map(findRestrictedV2Faults)).toEqual([ids, ids])
  })

  test.each(restrictedV2)('rejects a pod for one reason: $message', async ({ message, mistake }) => {
    const [pod] = await pods('openshift')
    mistake(pod)
    expect(findRestrictedV2Faults(pod)).toEqual([message])
  })
})
