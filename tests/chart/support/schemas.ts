import { PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule'
import { ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor'
import { Ajv } from 'ajv'
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler'
import { Ingress } from 'kubernetes-models/networking.k8s.io/v1/Ingress'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap'
import { PersistentVolumeClaim } from 'kubernetes-models/v1/PersistentVolumeClaim'
import { Pod } from 'kubernetes-models/v1/Pod'
import { Service } from 'kubernetes-models/v1/Service'
import { ServiceAccount } from 'kubernetes-models/v1/ServiceAccount'
import type { KubernetesObject } from './chart.ts'

const models = [
  ConfigMap,
  Deployment,
  HorizontalPodAutoscaler,
  Ingress,
  NetworkPolicy,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  PrometheusRule,
  Service,
  ServiceAccount,
  ServiceMonitor,
]

/**
 * A copy of `value` that removes the path of each field from `unread` when it is read. A validator reads the fields that
 * its schema has, and iterates over maps, so that the fields that remain are unknown to the schema.
 */
const trackReads = (value: unknown, path: string, unread: Set<string>): unknown => {
  if (Array.isArray(value)) return value.map((item, index) => trackReads(item, `${path}/${index}`, unread))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).map(([key, field]) => {
    unread.add(`${path}/${key}`)
    return [key, trackReads(field, `${path}/${key}`, unread)] as const
  })
  return new Proxy(Object.fromEntries(fields), {
    get(target, key) {
      unread.delete(`${path}/${String(key)}`)
      return Reflect.get(target, key)
    },
  })
}

const text = { type: 'string', minLength: 1 } as const
const strings = { type: 'object', additionalProperties: text } as const
const fields = (properties: object, required: readonly string[] = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})

/** What the example uses of https://cloudnative-pg.io/docs/: the CRD of its operator is tested with a real API server. */
const cluster = fields({
  apiVersion: { const: 'postgresql.cnpg.io/v1' },
  kind: { const: 'Cluster' },
  metadata: fields({ name: text }),
  spec: fields(
    {
      instances: { type: 'integer', minimum: 1 },
      postgresql: fields({
        synchronous: fields({
          method: { enum: ['any', 'first'] },
          number: { type: 'integer', minimum: 1 },
          dataDurability: { enum: ['required', 'preferred'] },
        }),
        parameters: strings,
      }),
      bootstrap: fields({
        initdb: fields(
          { database: text, owner: text, encoding: text, postInitApplicationSQL: { type: 'array', items: text } },
          ['database', 'owner', 'encoding'],
        ),
      }),
      managed: fields({
        roles: {
          type: 'array',
          items: fields({
            name: text,
            ensure: { enum: ['present', 'absent'] },
            login: { type: 'boolean' },
            passwordSecret: fields({ name: text }),
          }),
        },
      }),
      storage: fields({ size: text }),
      affinity: fields({ podAntiAffinityType: { enum: ['preferred', 'required'] }, topologyKey: text }),
      resources: fields({ requests: strings, limits: strings }),
    },
    ['instances', 'postgresql', 'bootstrap', 'storage', 'affinity', 'resources'],
  ),
})

/** What the chart uses of https://gateway-api.sigs.k8s.io/reference/spec/#httproute. */
const route = fields({
  apiVersion: { const: 'gateway.networking.k8s.io/v1' },
  kind: { const: 'HTTPRoute' },
  metadata: fields({ name: text, labels: strings, annotations: strings }, ['name']),
  spec: fields(
    {
      parentRefs: {
        type: 'array',
        items: fields({ name: text, namespace: text, sectionName: text, port: { type: 'integer' } }, ['name']),
      },
      hostnames: { type: 'array', items: text },
      rules: {
        type: 'array',
        items: fields({ backendRefs: { type: 'array', items: fields({ name: text, port: { type: 'integer' } }) } }),
      },
    },
    ['parentRefs', 'rules'],
  ),
})

const validators = { Cluster: new Ajv().compile(cluster), HTTPRoute: new Ajv().compile(route) }

/** What the schema of its kind does not allow in an object, unknown fields included. */
const findSchemaFaultsIn = (object: KubernetesObject): string[] => {
  const validate = validators[object.kind as keyof typeof validators]
  if (validate) {
    validate(object)
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    )
  }
  const model = models.find(({ apiVersion, kind }) => apiVersion === object.apiVersion && kind === object.kind)
  if (!model) return [`${object.apiVersion} ${object.kind} has no schema`]
  const unread = new Set<string>()
  try {
    model.prototype.validate.call(trackReads(object, '', unread))
  } catch (error) {
    return [String(error)]
  }
  return [...unread].map(path => `${path} is not a field`)
}

export const findSchemaFaults = (objects: readonly KubernetesObject[]): string[] =>
  objects.flatMap(object => findSchemaFaultsIn(object).map(fault => `${object.kind}: ${fault}`))
