import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { run } from './programs.ts'

export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const chart = join(root, 'infra/chart')
export const kustomize = join(root, 'infra/kustomize')

export const readFile = (path: string): string => readFileSync(path, 'utf8')

/** Namespace and release of the examples in the documentation. */
export const RELEASE = 'pool-allocation'

/** The sets of values that come with the chart. */
export const valueSets = ['one-replica', 'three-replicas', 'deployments'] as const
export type ValueSet = (typeof valueSets)[number]

export const toValuesFile = (set: ValueSet): string => join(chart, 'values', `${set}.yaml`)

/** A Kubernetes object. The tests read fields of every shape. */
export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> }
  // biome-ignore lint/suspicious/noExplicitAny: the specification of any kind.
  [field: string]: any
}

export const parseObjects = (text: string): KubernetesObject[] =>
  parseAllDocuments(text).flatMap(document => {
    if (document.errors[0]) throw document.errors[0]
    const object = document.toJS() as KubernetesObject | null
    return object === null ? [] : [object]
  })

/** The manifests that helm renders, without a cluster. Throws the error of helm. */
export const renderText = async (set: ValueSet, args: readonly string[] = []): Promise<string> => {
  const { code, stdout, stderr } = await run('helm', [
    ...['template', RELEASE, chart],
    ...['--namespace', RELEASE, '--values', toValuesFile(set)],
    ...args,
  ])
  if (code !== 0) throw new Error(stderr.trim())
  return stdout
}

export const render = async (set: ValueSet, args: readonly string[] = []): Promise<KubernetesObject[]> =>
  parseObjects(await renderText(set, args))

/** The rules of infra/monitoring, which a chart can only read from its own folder. */
export const toRuleFiles = (): readonly (readonly [path: string, text: string])[] =>
  ['alerts.yaml', 'recording-rules.yaml'].map(name => [
    join(chart, 'files', name),
    readFile(join(root, 'infra/monitoring', name)),
  ])

/** The manifests of infra/kustomize: the paths, and what the chart renders. */
export const renderKustomize = async (): Promise<ReadonlyMap<string, string>> => {
  const show = (...templates: string[]) =>
    renderText(
      'three-replicas',
      templates.flatMap(name => ['--show-only', `templates/${name}.yaml`]),
    )
  const [api, witness, monitoring] = await Promise.all([
    show('api', 'api-deployment'),
    show('witness'),
    show('monitoring'),
  ])
  return new Map([
    [join(kustomize, 'allocation-api/allocation-api.yaml'), api],
    [join(kustomize, 'lease-witness/lease-witness.yaml'), witness],
    [join(kustomize, 'monitoring/monitoring.yaml'), monitoring],
  ])
}
