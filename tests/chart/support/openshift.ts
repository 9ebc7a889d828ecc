import type { KubernetesObject } from './chart.ts'
import { listContainers } from './pod.ts'

type PodSpec = KubernetesObject['spec']

/** What OpenShift assigns to a namespace: the users of its pods, the group of their files and their SELinux level. */
export const FIRST_ID = 1_000_680_000
const LAST_ID = FIRST_ID + 9_999
const LEVEL = 's0:c26,c10'

const VOLUMES = [
  ...['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral'],
  ...['persistentVolumeClaim', 'projected', 'secret'],
]

/** A rule as a function, in CEL, and with a mistake that only this rule rejects. */
interface Rule {
  readonly message: string
  readonly allows: (pod: PodSpec) => boolean
  readonly cel: string
  readonly mistake: (pod: PodSpec) => void
}

/** The security contexts of the pod and of its containers. */
const listContexts = (pod: PodSpec): PodSpec[] => [pod, ...listContainers(pod)].map(each => each.securityContext ?? {})

const everyContext = (cel: string): string =>
  `([object.spec.?securityContext.?FIELD] + variables.containers.map(c, c.?securityContext.?FIELD)).all(x, ${cel})`
const ofContexts = (field: string, cel: string): string => everyContext(cel).replaceAll('FIELD', field)
const ofContainers = (cel: string): string => `variables.containers.all(c, ${cel})`

const hostRules = (['hostNetwork', 'hostPID', 'hostIPC'] as const).map(
  (field): Rule => ({
    message: `${field} is true`,
    allows: pod => pod[field] !== true,
    cel: `!object.spec.?${field}.orValue(false)`,
    mistake: pod => Object.assign(pod, { [field]: true }),
  }),
)

/**
 * The constraint restricted-v2 of OpenShift 4.11 and later, after it has filled in what a pod leaves open: `oc describe scc
 * restricted-v2`.
 */
export const restrictedV2: readonly Rule[] = [
  ...hostRules,
  {
    message: 'runAsUser is not of the namespace',
    allows: pod => listContexts(pod).every(({ runAsUser: id = FIRST_ID }) => id >= FIRST_ID && id <= LAST_ID),
    cel: ofContexts('runAsUser', `x.orValue(${FIRST_ID}) >= ${FIRST_ID} && x.orValue(${FIRST_ID}) <= ${LAST_ID}`),
    mistake: pod => Object.assign(pod.containers[0].securityContext, { runAsUser: 65_532 }),
  },
  {
    message: 'fsGroup is not of the namespace',
    allows: pod => [undefined, FIRST_ID].includes(pod.securityContext?.fsGroup),
    cel: `object.spec.?securityContext.?fsGroup.orValue(${FIRST_ID}) == ${FIRST_ID}`,
    mistake: pod => Object.assign(pod.securityContext, { fsGroup: 65_532 }),
  },
  {
    message: 'the SELinux level is not of the namespace',
    allows: pod => listContexts(pod).every(({ seLinuxOptions }) => (seLinuxOptions?.level ?? LEVEL) === LEVEL),
    cel: ofContexts('seLinuxOptions', `x.?level.orValue('${LEVEL}') == '${LEVEL}'`),
    mistake: pod => Object.assign(pod.securityContext, { seLinuxOptions: { level: 's0:c1,c2' } }),
  },
  {
    message: 'the seccomp profile is not RuntimeDefault',
    allows: pod =>
      listContexts(pod).every(({ seccompProfile: profile }) => !profile || profile.type === 'RuntimeDefault'),
    cel: ofContexts('seccompProfile', "x.?type.orValue('RuntimeDefault') == 'RuntimeDefault'"),
    mistake: pod => Object.assign(pod.containers[0].securityContext, { seccompProfile: { type: 'Unconfined' } }),
  },
  {
    message: 'a container is privileged',
    allows: pod => listContexts(pod).every(({ privileged }) => privileged !== true),
    cel: ofContainers('!c.?securityContext.?privileged.orValue(false)'),
    // Kubernetes rejects a privileged container that must not escalate.
    mistake: pod => {
      const { allowPrivilegeEscalation: _, ...others } = pod.containers[0].securityContext
      pod.containers[0].securityContext = { ...others, privileged: true }
    },
  },
  {
    message: 'a container allows privilege escalation',
    allows: pod => listContexts(pod).every(({ allowPrivilegeEscalation }) => allowPrivilegeEscalation !== true),
    cel: ofContainers('!c.?securityContext.?allowPrivilegeEscalation.orValue(false)'),
    mistake: pod => Object.assign(pod.initContainers[0].securityContext, { allowPrivilegeEscalation: true }),
  },
  {
    message: 'a container adds capabilities',
    allows: pod =>
      listContexts(pod).every(({ capabilities }) =>
        (capabilities?.add ?? []).every((name: string) => name === 'NET_BIND_SERVICE'),
      ),
    cel: ofContainers("c.?securityContext.?capabilities.?add.orValue([]).all(x, x == 'NET_BIND_SERVICE')"),
    mistake: pod => Object.assign(pod.containers[0].securityContext.capabilities, { add: ['NET_RAW'] }),
  },
  {
    message: 'a container uses a port of the host',
    allows: pod => listContainers(pod).every(({ ports }) => (ports ?? []).every((port: PodSpec) => !port.hostPort)),
    cel: ofContainers('c.?ports.orValue([]).all(x, x.?hostPort.orValue(0) == 0)'),
    mistake: pod => Object.assign(pod.containers[0].ports[0], { hostPort: 8_080 }),
  },
  {
    message: 'a volume has another type',
    allows: pod =>
      (pod.volumes ?? []).every(({ name: _, ...source }: PodSpec) =>
        Object.keys(source).every(type => VOLUMES.includes(type)),
      ),
    cel: `object.spec.?volumes.orValue([]).all(x, ${VOLUMES.map(type => `has(x.${type})`).join(' || ')})`,
    mistake: pod => pod.volumes.push({ name: 'host', hostPath: { path: '/' } }),
  },
]

/** Why restricted-v2 rejects a pod. */
export const findRestrictedV2Faults = (pod: PodSpec): string[] =>
  restrictedV2.filter(({ allows }) => !allows(pod)).map(({ message }) => message)

/** The same rules for the pods of each namespace with this label. */
export const RESTRICTED_LABEL = 'restricted-v2'

export const restrictedV2Policy = [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'restricted-v2' },
    spec: {
      failurePolicy: 'Fail',
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      },
      variables: [
        { name: 'containers', expression: 'object.spec.containers + object.spec.?initContainers.orValue([])' },
      ],
      validations: restrictedV2.map(({ message, cel }) => ({ message, expression: cel })),
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'restricted-v2' },
    spec: {
      policyName: 'restricted-v2',
      validationActions: ['Deny'],
      matchResources: { namespaceSelector: { matchLabels: { [RESTRICTED_LABEL]: 'enforced' } } },
    },
  },
]
