import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '@pool/test-kit/kubernetes/programs.ts'
import { parseAllDocuments } from 'yaml'

export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const chart = join(root, 'infra/chart')

/** The examples of databases for the CloudNativePG operator. */
const databases = join(root, 'infra/postgres')

export const readFile = (path: string): string => readFileSync(path, 'utf8')

/** Namespace and release of the examples in the documentation. */
export const RELEASE = 'pool-allocation'

/** The sets of values that come with the chart. */
export const valueSets = ['one-replica', 'three-replicas', 'deployments', 'hardened', 'openshift'] as const
export type ValueSet = (typeof valueSets)[number]

export const toValuesFile = (set: ValueSet): string => join(chart, 'values', `${set}.yaml`)

/** The arguments of helm. `hardened` and `openshift` are for the top of another set. */
export const toValuesArgs = (set: ValueSet): readonly string[] =>
  [...(set === 'hardened' || set === 'openshift' ? (['three-replicas'] as const) : []), set].flatMap(each => [
    '--values',
    toValuesFile(each),
  ])

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

/** The manifests that helm renders, without a cluster and without the pod of `helm test`. Throws the error of helm. */
export const renderText = async (set: ValueSet, args: readonly string[] = [], path = chart): Promise<string> => {
  const { code, stdout, stderr } = await run('helm', [
    ...['template', RELEASE, path],
    ...['--namespace', RELEASE, '--skip-tests'],
    ...toValuesArgs(set),
    ...args,
  ])
  if (code !== 0) throw new Error(stderr.trim())
  return stdout
}

export const render = async (...args: Parameters<typeof renderText>): Promise<KubernetesObject[]> =>
  parseObjects(await renderText(...args))

/** The arguments of helm for values on top of files. Later ones are on top of earlier ones. */
export const toSetArgs = (values: readonly object[]): string[] =>
  values.flatMap(each => ['--set-json', JSON.stringify(each)])

/** The example of a database for a service. */
export const readDatabaseExample = (service: 'allocation-api' | 'lease-witness'): KubernetesObject[] =>
  parseObjects(readFile(join(databases, `${service}.yaml`)))
