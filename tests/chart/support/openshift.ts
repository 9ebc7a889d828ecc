import type { KubernetesObject } from './chart.ts'
import { listContainers } from './pod.ts'

type Json = KubernetesObject['spec']

/** What OpenShift assigns to a namespace: the users of its pods, the group of their files and their SELinux level. */
const FIRST_ID = 1_000_680_000
const LAST_ID = FIRST_ID + 9_999
const LEVEL = 's0:c26,c10'
const VOLUMES = [
  ...['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral'],
  ...['persistentVolumeClaim', 'projected', 'secret'],
]

/** A rule as a function, in CEL, and with a mistake that only this rule rejects. */
interface Rule {
  readonly message: string
  readonly allows: (pod: Json) => boolean
  readonly cel: string
  readonly mistake: (pod: Json) => void
}

/** A rule of a field in each security context, where `cel` has the optional x. */
const ofContexts = (field: string, allows: (value: Json) => boolean, cel: string, mistake: unknown): Rule => ({
  message: `this ${field} is not allowed`,
  allows: pod => [pod, ...listContainers(pod)].every(each => allows(each.securityContext?.[field])),
  cel: `([object.spec.?securityContext.?${field}] + variables.containers.map(c, c.?securityContext.?${field})).all(x, ${cel})`,
  mistake: pod => Object.assign(pod.containers[0], { securityContext: { [field]: mistake } }),
})

const ofHost = (field: string): Rule => ({
  message: `this ${field} is not allowed`,
  allows: pod => pod[field] !== true,
  cel: `!object.spec.?${field}.orValue(false)`,
  mistake: pod => Object.assign(pod, { [field]: true }),
})

/**
 * The constraint restricted-v2 of OpenShift 4.11 and later, after it has filled in what a pod leaves open: `oc describe scc
 * restricted-v2`.
 */
export const restrictedV2: readonly Rule[] = [
  ...['hostNetwork', 'hostPID', 'hostIPC'].map(ofHost),
  ofContexts(
    'runAsUser',
    (id = FIRST_ID) => id >= FIRST_ID && id <= LAST_ID,
    `x.orValue(${FIRST_ID}) >= ${FIRST_ID} && x.orValue(${FIRST_ID}) <= ${LAST_ID}`,
    65_532,
  ),
  {
    ...ofContexts('fsGroup', (id = FIRST_ID) => id === FIRST_ID, `x.orValue(${FIRST_ID}) == ${FIRST_ID}`, 65_532),
    mistake: pod => Object.assign(pod.securityContext, { fsGroup: 65_532 }),
  },
  ofContexts(
    'seLinuxOptions',
    value => (value?.level ?? LEVEL) === LEVEL,
    `x.?level.orValue('${LEVEL}') == '${LEVEL}'`,
    {
      level: 's0:c1,c2',
    },
  ),
  ofContexts(
    'seccompProfile',
    value => (value?.type ?? 'RuntimeDefault') === 'RuntimeDefault',
    "x.?type.orValue('RuntimeDefault') == 'RuntimeDefault'",
    { type: 'Unconfined' },
  ),
  ofContexts('privileged', value => value !== true, '!x.orValue(false)', true),
  ofContexts('allowPrivilegeEscalation', value => value !== true, '!x.orValue(false)', true),
  ofContexts(
    'capabilities',
    value => (value?.add ?? []).every((name: string) => name === 'NET_BIND_SERVICE'),
    "x.?add.orValue([]).all(name, name == 'NET_BIND_SERVICE')",
    { add: ['NET_RAW'] },
  ),
  {
    message: 'this hostPort is not allowed',
    allows: pod => listContainers(pod).every(({ ports }) => (ports ?? []).every((port: Json) => !port.hostPort)),
    cel: 'variables.containers.all(c, c.?ports.orValue([]).all(x, x.?hostPort.orValue(0) == 0))',
    mistake: pod => Object.assign(pod.containers[0].ports[0], { hostPort: 8_080 }),
  },
  {
    message: 'this volume is not allowed',
    allows: pod => pod.volumes.every((volume: Json) => VOLUMES.some(type => volume[type])),
    cel: `object.spec.?volumes.orValue([]).all(x, ${VOLUMES.map(type => `has(x.${type})`).join(' || ')})`,
    mistake: pod => pod.volumes.push({ name: 'host', hostPath: { path: '/' } }),
  },
]

/** Why restricted-v2 rejects a pod. */
export const findRestrictedV2Faults = (pod: Json): string[] =>
  restrictedV2.filter(({ allows }) => !allows(pod)).map(({ message }) => message)

const toPolicy = (kind: string, spec: object) => {
  const metadata = { name: 'restricted-v2' }
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata, spec }
}

/** The same rules for the pods of a namespace. */
export const toRestrictedV2Policy = (namespace: string) => [
  toPolicy('ValidatingAdmissionPolicy', {
    matchConstraints: {
      resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
    },
    variables: [{ name: 'containers', expression: 'object.spec.containers + object.spec.?initContainers.orValue([])' }],
    validations: restrictedV2.map(({ message, cel }) => ({ message, expression: cel })),
  }),
  toPolicy('ValidatingAdmissionPolicyBinding', {
    policyName: 'restricted-v2',
    validationActions: ['Deny'],
    matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } },
  }),
]
