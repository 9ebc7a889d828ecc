import { createHash } from 'node:crypto'
import { parse } from 'yaml'
import { type KubernetesObject, readFile, render, toValuesFile, type ValueSet } from './chart.ts'

// Fields of pod templates have the type of KubernetesObject: any shape.
type PodSpec = KubernetesObject['spec']
type Container = KubernetesObject['spec']

export const findDeployments = (objects: readonly KubernetesObject[]): KubernetesObject[] =>
  objects.filter(({ kind }) => kind === 'Deployment')

export const listContainers = (spec: PodSpec): Container[] => [...(spec.initContainers ?? []), ...spec.containers]

/** Where a file in a container comes from. */
export interface MountedKey {
  readonly kind: 'secret' | 'configMap'
  readonly object: string
  readonly key: string
}

/** The keys of Secrets and ConfigMaps that a container has as files, by their paths. */
export const listMountedKeys = (spec: PodSpec, container: Container): Map<string, MountedKey> => {
  const files = new Map<string, MountedKey>()
  for (const { name, mountPath } of container.volumeMounts ?? []) {
    const volume = (spec.volumes ?? []).find((candidate: { name: string }) => candidate.name === name)
    for (const source of volume?.projected?.sources ?? []) {
      const kind = source.secret ? 'secret' : 'configMap'
      for (const { key, path } of source[kind].items)
        files.set(`${mountPath}/${path}`, { kind, object: source[kind].name, key })
    }
  }
  return files
}

/** The values of secrets that an operator has created, as `name/key`. */
export type Secrets = Readonly<Record<string, string>>

/**
 * The environment of a container, in which each secret in a file is the value of its variable, as the services read it; and
 * every reference that leads nowhere.
 */
export const resolveEnv = (
  spec: PodSpec,
  container: Container,
  secrets: Secrets,
): { readonly env: Record<string, string>; readonly faults: readonly string[] } => {
  const env: Record<string, string> = {}
  const faults: string[] = []
  const files = listMountedKeys(spec, container)
  const readSecret = (variable: string, name: string, key: string): void => {
    const value = secrets[`${name}/${key}`]
    if (value === undefined) faults.push(`${variable}: the Secret ${name} has no key ${key}`)
    else {
      env[variable] = value
      const authority = /[?&]sslrootcert=([^&]+)/.exec(value)?.[1]
      if (authority && authority !== 'system' && !files.has(authority))
        faults.push(`${variable}: no volume has the file ${authority}`)
    }
  }
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (env[name] !== undefined) faults.push(`${name} is set twice`)
    if (valueFrom) readSecret(name, valueFrom.secretKeyRef.name, valueFrom.secretKeyRef.key)
    else if (name.endsWith('_FILE') && value.startsWith('/run/secrets/')) {
      const file = files.get(value)
      if (file) readSecret(name.slice(0, -'_FILE'.length), file.object, file.key)
      else faults.push(`${name}: no volume has the file ${value}`)
    } else {
      env[name] = value
      if (value.startsWith('/etc/pool-allocation/') && !files.has(value)) {
        faults.push(`${name}: no volume has the file ${value}`)
      }
    }
  }
  return { env, faults }
}

/** The number of a port that a probe, a Service or a policy names. */
export const toPortNumber = (container: Container, port: string | number): number | undefined =>
  typeof port === 'number' ? port : container.ports?.find(({ name }: { name: string }) => name === port)?.containerPort

const metricsToken = 'metrics-token-0123456789abcdef'

const certificates = '?sslmode=verify-full&sslrootcert=/etc/pool-allocation/database-ca.crt'

/** What an operator has created before the installation. Both databases are in the cluster. */
export const secrets: Secrets = {
  'pool-allocation-database/url': `postgres://allocation_service:secret-1@pool-allocation-postgres-rw:5432/allocation${certificates}`,
  'pool-allocation-database/migration-url': `postgres://allocation_owner:secret-2@pool-allocation-postgres-rw:5432/allocation${certificates}`,
  'pool-allocation-operator/tokens': 'operator-token-0123456789abcdef0123456789abcdef',
  'pool-allocation-dns/token': 'cloudflare-token-0123456789',
  'pool-allocation-dns/api-key': 'powerdns-key-0123456789',
  'pool-allocation-dns/tsig-secret': 'c2VjcmV0LW9mLXRoZS10c2lnLWtleS1mb3ItdGVzdHM=',
  'lease-witness-database/url': `postgres://lease_witness:secret-3@lease-witness-postgres-rw:5432/lease_witness${certificates}`,
  'lease-witness-tokens/policies': JSON.stringify([
    { name: 'prometheus', token: `sha256:${createHash('sha256').update(metricsToken).digest('hex')}`, access: 'read' },
  ]),
  'lease-witness-metrics/token': metricsToken,
  'acme-states/access-key': 'access-key-0123456789',
  'acme-states/secret-key': 'secret-key-0123456789',
  'acme-hcloud/token': 'hcloud-token-0123456789',
}

/** With the other sets of values, Postgres is outside of the cluster, and a public authority has signed its certificate. */
export const toSecrets = (set: ValueSet): Secrets =>
  set === 'three-replicas' || set === 'hardened' || set === 'openshift'
    ? secrets
    : {
        ...secrets,
        'pool-allocation-database/url':
          'postgres://allocation:secret-4@postgres.example:5432/allocation?sslmode=verify-full&sslrootcert=system',
      }

/** The variables of values/hardened.yaml as the chart renders them for the container of this name. */
export const renderHardenedEnv = async (component: 'api' | 'witness'): Promise<Record<string, string>> => {
  const { config } = parse(readFile(toValuesFile('hardened')))[component]
  const pod = findDeployments(await render('hardened')).find(({ metadata }) => metadata.name.endsWith(component))
  const variables: { name: string; value: string }[] = pod?.spec.template.spec.containers[0].env
  return Object.fromEntries(variables.filter(({ name }) => name in config).map(({ name, value }) => [name, value]))
}
