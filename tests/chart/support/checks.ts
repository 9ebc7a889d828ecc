import { readServiceConfig } from 'allocation-api/src/service-config.ts'
import { readConfig as readWitnessConfig } from 'lease-witness/src/node/config.ts'
import type { KubernetesObject } from './chart.ts'
import { findDeployments, listContainers, listMountedKeys, resolveEnv, type Secrets, toPortNumber } from './pod.ts'
import { findSchemaFaults } from './schemas.ts'

/** Finds faults in the objects of one installation. Each fault is a sentence. */
export type Check = (objects: readonly KubernetesObject[], secrets: Secrets) => string[]

/** The longest stop of both services, without the drain delay: docs/operate/upgrade.md. */
const MAX_STOP_MS = 20_000
const MAX_DRAIN_MS = 10_000
/** The directories that a service writes to, the socket of Terraform, and the cache of its providers. */
const WRITABLE = ['/tmp', '/run/terraform', '/var/cache/pool-allocation', '/var/lib/pool-allocation']

const ofKind = (objects: readonly KubernetesObject[], kind: string) => objects.filter(object => object.kind === kind)

const matches = (selector: Record<string, string> | undefined, labels: Record<string, string> | undefined): boolean =>
  Object.entries(selector ?? { none: 'none' }).every(([key, value]) => labels?.[key] === value)

const podsOf = (objects: readonly KubernetesObject[], selector: Record<string, string> | undefined) =>
  findDeployments(objects).filter(({ spec }) => matches(selector, spec.template.metadata.labels))

const isApi = (deployment: KubernetesObject): boolean =>
  deployment.metadata.labels?.['app.kubernetes.io/name'] === 'allocation-api'

/** Each configuration is read by the parser of its service. */
const readServices = (objects: readonly KubernetesObject[], secrets: Secrets) =>
  findDeployments(objects).map(deployment => {
    const { spec } = deployment.spec.template
    const container = spec.containers[0]
    const { env, faults } = resolveEnv(spec, container, secrets)
    const api = isApi(deployment) ? readServiceConfig(env) : null
    const witness = api ? null : readWitnessConfig(env)
    const issues = [api, witness].flatMap(result => (result && 'issues' in result ? result.issues : []))
    return {
      spec,
      container,
      env,
      faults: [...faults, ...issues.map(({ variable, detail }) => `${variable} ${detail}`)],
      config: api && 'config' in api ? api.config : null,
      witnessConfig: witness && 'config' in witness ? witness.config : null,
    }
  })

const findConfigFaults: Check = (objects, secrets) => {
  const services = readServices(objects, secrets)
  const migrations = findDeployments(objects).flatMap(({ spec }) =>
    (spec.template.spec.initContainers ?? []).flatMap((container: KubernetesObject['spec']) => {
      if (!['migrate', 'terraform'].includes(container.name)) return []
      const { env, faults } = resolveEnv(spec.template.spec, container, secrets)
      // That of Terraform has none.
      const isComplete = env.PDM_TERRAFORM_RUNNER !== undefined || env.PDM_DATABASE_URL !== undefined
      return isComplete ? faults : [...faults, 'the migration has no PDM_DATABASE_URL']
    }),
  )
  const monitors = ofKind(objects, 'ServiceMonitor').flatMap(({ metadata, spec }) =>
    spec.endpoints.flatMap(({ authorization }: KubernetesObject['spec']) => {
      const { name, key } = authorization?.credentials ?? {}
      const isMissing = authorization && secrets[`${name}/${key}`] === undefined
      return isMissing ? [`ServiceMonitor ${metadata.name}: the Secret ${name} has no key ${key}`] : []
    }),
  )
  const ports = services.flatMap(({ container, config, witnessConfig }) => {
    const expected = config ? { http: config.port, operator: config.operator?.port } : { http: witnessConfig?.port }
    return Object.entries(expected).flatMap(([name, port]) =>
      toPortNumber(container, name) === port ? [] : [`the port ${name} of the container is not ${port}`],
    )
  })
  return [...services.flatMap(({ faults }) => faults), ...migrations, ...monitors, ...ports]
}

const findLifecycleFaults: Check = (objects, secrets) =>
  readServices(objects, secrets).flatMap(({ spec, container, env, config, witnessConfig }) => {
    const graceMs = 1_000 * (spec.terminationGracePeriodSeconds ?? 30)
    const drainMs = config?.drainMs ?? witnessConfig?.drainMs ?? 0
    const hasDeployments = env.PDM_DEPLOYMENTS_DIR !== undefined
    const hook = container.lifecycle?.preStop?.exec?.command
    const faults: string[] = []
    if (drainMs <= 0 || drainMs > MAX_DRAIN_MS) faults.push(`the drain delay is ${drainMs} ms`)
    if (graceMs < drainMs + MAX_STOP_MS) faults.push('the grace period is shorter than a stop')
    const { timeoutMs, stopTimeoutMs } = config?.deployments ?? { timeoutMs: 0, stopTimeoutMs: 0 }
    if (hasDeployments && config && graceMs < timeoutMs + stopTimeoutMs + drainMs + MAX_STOP_MS) {
      faults.push('the grace period is shorter than PDM_DEPLOYMENT_TIMEOUT, PDM_TERRAFORM_STOP_TIMEOUT and a stop')
    }
    if (hasDeployments !== (hook !== undefined)) faults.push('the drain hook belongs to deployments')
    for (const name of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const target = container[name]?.httpGet ?? container[name]?.tcpSocket
      if (target === undefined) faults.push(`the container has no ${name}`)
      else if (toPortNumber(container, target.port) !== (config ?? witnessConfig)?.port) {
        faults.push(`the ${name} uses another port than the service`)
      }
    }
    return faults
  })

const findReferenceFaults: Check = objects => {
  const faults: string[] = []
  const select = (object: KubernetesObject, selector: Record<string, string> | undefined) => {
    const pods = podsOf(objects, selector)
    if (pods.length !== 1) faults.push(`${object.kind} ${object.metadata.name} selects ${pods.length} Deployments`)
    return pods[0]?.spec.template.spec.containers[0]
  }
  for (const service of ofKind(objects, 'Service')) {
    const container = select(service, service.spec.selector)
    for (const { targetPort, port } of service.spec.ports) {
      if (container && toPortNumber(container, targetPort) !== port) {
        faults.push(`Service ${service.metadata.name}: ${targetPort} of the container is not ${port}`)
      }
    }
  }
  for (const budget of ofKind(objects, 'PodDisruptionBudget')) select(budget, budget.spec.selector?.matchLabels)
  for (const policy of ofKind(objects, 'NetworkPolicy')) select(policy, policy.spec.podSelector?.matchLabels)
  const backends = [
    ...ofKind(objects, 'Ingress').flatMap(({ spec }) =>
      spec.rules.map(({ http: { paths } }: KubernetesObject['spec']) => paths[0].backend.service),
    ),
    ...ofKind(objects, 'HTTPRoute').flatMap(({ spec }) => spec.rules[0].backendRefs),
  ]
  for (const { name, port } of backends) {
    const ports = ofKind(objects, 'Service').find(({ metadata }) => metadata.name === name)?.spec.ports ?? []
    if (!ports.some((each: KubernetesObject['spec']) => [each.port, each.name].includes(port.name ?? port)))
      faults.push(`no Service ${name} has the port ${port.name ?? port}`)
  }
  for (const monitor of ofKind(objects, 'ServiceMonitor')) {
    const ports = ofKind(objects, 'Service')
      .filter(({ metadata }) => matches(monitor.spec.selector.matchLabels, metadata.labels))
      .flatMap(({ spec }) => spec.ports.map(({ name }: { name: string }) => name))
    for (const { port } of monitor.spec.endpoints) {
      const count = ports.filter(name => name === port).length
      if (count !== 1) faults.push(`ServiceMonitor ${monitor.metadata.name}: ${count} Services have the port ${port}`)
    }
  }
  for (const deployment of findDeployments(objects)) {
    const { name } = deployment.metadata
    const { spec, metadata } = deployment.spec.template
    if (!matches(deployment.spec.selector.matchLabels, metadata.labels)) faults.push(`${name} does not select its pods`)
    for (const { labelSelector, topologyKey } of spec.topologySpreadConstraints ?? []) {
      if (!matches(labelSelector?.matchLabels, metadata.labels))
        faults.push(`${name}: ${topologyKey} spreads other pods`)
    }
    const accounts = ofKind(objects, 'ServiceAccount').map(account => account.metadata.name)
    if (!accounts.includes(spec.serviceAccountName))
      faults.push(`${name}: no ServiceAccount ${spec.serviceAccountName}`)
    const volumes: string[] = (spec.volumes ?? []).map((volume: { name: string }) => volume.name)
    const mounted = listContainers(spec).flatMap(({ volumeMounts }) => volumeMounts ?? [])
    for (const mount of mounted) if (!volumes.includes(mount.name)) faults.push(`${name}: no volume ${mount.name}`)
    for (const volume of volumes) {
      if (!mounted.some(mount => mount.name === volume)) faults.push(`${name}: the volume ${volume} is not mounted`)
    }
    for (const { persistentVolumeClaim: claim } of spec.volumes ?? []) {
      const exists = ofKind(objects, 'PersistentVolumeClaim').some(({ metadata }) => metadata.name === claim?.claimName)
      if (claim && !exists) faults.push(`${name}: no PersistentVolumeClaim ${claim.claimName}`)
    }
  }
  return faults
}

/** The controls of https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted. */
const ALLOWED_VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
]

/** Why a namespace that enforces the pod security standard `restricted` rejects a pod. */
export const findPodSecurityFaults = (spec: KubernetesObject['spec']): string[] => {
  const pod = spec.securityContext ?? {}
  const faults: string[] = []
  const require = (holds: boolean, fault: string) => void (holds || faults.push(fault))
  for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) require(!spec[field], `${field} is true`)
  for (const { name, ...source } of spec.volumes ?? []) {
    for (const type of Object.keys(source)) require(ALLOWED_VOLUMES.includes(type), `the volume ${name} is a ${type}`)
  }
  require((pod.sysctls ?? []).length === 0, 'sysctls are set')
  for (const container of listContainers(spec)) {
    const own = container.securityContext ?? {}
    const { seccompProfile, runAsNonRoot, runAsUser } = { ...pod, ...own }
    const add: string[] = own.capabilities?.add ?? []
    require(own.privileged !== true, `${container.name} is privileged`)
    require(own.allowPrivilegeEscalation === false, `${container.name} allows privilege escalation`)
    require(runAsNonRoot === true && runAsUser !== 0, `${container.name} may run as root`)
    require(own.capabilities?.drop?.includes('ALL') === true, `${container.name} keeps capabilities`)
    require(add.every(name => name === 'NET_BIND_SERVICE'), `${container.name} adds capabilities`)
    require(['RuntimeDefault', 'Localhost'].includes(seccompProfile?.type), `${container.name} has no seccomp profile`)
    require([undefined, 'Default'].includes(own.procMount), `${container.name} sets procMount`)
    for (const port of container.ports ?? []) require(!port.hostPort, `${container.name} uses a port of the host`)
  }
  return faults
}

const findSecurityFaults: Check = (objects, secrets) => {
  const faults = ofKind(objects, 'ServiceAccount')
    .filter(account => account.automountServiceAccountToken !== false)
    .map(({ metadata }) => `ServiceAccount ${metadata.name} mounts its token`)
  for (const { metadata, spec: deployment } of findDeployments(objects)) {
    const { spec } = deployment.template
    const terraform = listContainers(spec).find(({ name }) => name === 'terraform')
    if (terraform && listMountedKeys(spec, terraform).size > 0) faults.push('Terraform has files of the service')
    if (spec.shareProcessNamespace) faults.push(`${metadata.name}: Terraform sees the processes of the service`)
    faults.push(...findPodSecurityFaults(spec).map(fault => `${metadata.name}: ${fault}`))
    if (spec.automountServiceAccountToken !== false) faults.push(`${metadata.name} mounts the token`)
    const { runAsUser, fsGroup } = spec.securityContext ?? {}
    if (runAsUser !== fsGroup) faults.push(`${metadata.name}: ${runAsUser} cannot read the files of ${fsGroup}`)
    for (const container of listContainers(spec)) {
      if (container.securityContext?.readOnlyRootFilesystem !== true) {
        faults.push(`${container.name}: the root filesystem is writable`)
      }
      for (const { mountPath, readOnly } of container.volumeMounts ?? []) {
        if (!readOnly && !WRITABLE.includes(mountPath)) faults.push(`${container.name}: ${mountPath} is writable`)
      }
      for (const { name, value } of container.env ?? []) {
        if (Object.values(secrets).includes(value)) faults.push(`${container.name}: ${name} has the value of a secret`)
      }
    }
  }
  return faults
}

const findAvailabilityFaults: Check = objects => {
  const faults: string[] = []
  for (const { metadata, spec } of ofKind(objects, 'PodDisruptionBudget')) {
    if (spec.maxUnavailable !== 1)
      faults.push(`${metadata.name}: a drain of a node may stop the wrong number of replicas`)
  }
  for (const { metadata, spec: deployment } of findDeployments(objects)) {
    const { spec } = deployment.template
    const pods = deployment.template.metadata.labels
    const budgets = ofKind(objects, 'PodDisruptionBudget').filter(({ spec: { selector } }) =>
      matches(selector?.matchLabels, pods),
    )
    if (budgets.length !== 1) faults.push(`${metadata.name} has ${budgets.length} PodDisruptionBudgets`)
    const hasClaim = (spec.volumes ?? []).some(
      (volume: { persistentVolumeClaim?: object }) => volume.persistentVolumeClaim,
    )
    if (hasClaim ? deployment.strategy.type !== 'Recreate' : deployment.strategy.rollingUpdate?.maxUnavailable !== 0) {
      faults.push(`${metadata.name}: a rollout stops serving, or never ends`)
    }
    if ((spec.topologySpreadConstraints ?? []).length === 0) faults.push(`${metadata.name} is not spread`)
    for (const { name, resources } of listContainers(spec)) {
      if (!resources?.requests?.cpu || !resources.requests.memory || !resources.limits?.memory) {
        faults.push(`${name}: requests or the limit of memory are missing`)
      }
    }
  }
  return faults
}

const findNetworkFaults: Check = (objects, secrets) => {
  const services = readServices(objects, secrets)
  return findDeployments(objects).flatMap((deployment, index) => {
    const { config, witnessConfig } = services[index] ?? {}
    const { name } = deployment.metadata
    const policy = ofKind(objects, 'NetworkPolicy').find(({ spec }) =>
      matches(spec.podSelector?.matchLabels, deployment.spec.template.metadata.labels),
    )
    if (!policy) return [`${name} has no NetworkPolicy`]
    const { policyTypes, ingress, egress } = policy.spec
    const faults: string[] = []
    for (const type of ['Ingress', 'Egress'])
      if (!policyTypes?.includes(type)) faults.push(`${name} allows any ${type}`)
    for (const { from, to, ports } of [...(ingress ?? []), ...(egress ?? [])]) {
      const peers = from ?? to ?? []
      if (peers.length === 0 || peers.some((peer: object) => Object.keys(peer).length === 0)) {
        faults.push(`${name}: a rule allows every peer`)
      }
      if ((ports ?? []).length === 0) faults.push(`${name}: a rule allows every port`)
    }
    const toPorts = (rules: KubernetesObject['spec'][]) =>
      (rules ?? []).flatMap(({ ports }) =>
        (ports ?? []).map(({ protocol, port }: { protocol: string; port: number }) => `${protocol} ${port}`),
      )
    const allowed = new Set<string>(toPorts(ingress))
    const served = [config?.port ?? witnessConfig?.port, config?.operator?.port].map(port => `TCP ${port}`)
    for (const port of allowed)
      if (!served.includes(port)) faults.push(`${name} allows clients at ${port}, which nothing serves`)
    if (!allowed.has(served[0] ?? '')) faults.push(`${name} allows no client`)
    const destinations = toPorts(egress)
    const database = new URL(config?.database.url ?? witnessConfig?.database.url ?? 'postgres://unknown')
    // OpenShift serves DNS at another port of its pods.
    const dnsServer = destinations.includes('UDP 5353') ? 5_353 : 53
    for (const port of [`UDP ${dnsServer}`, `TCP ${dnsServer}`, `TCP ${database.port || 5432}`]) {
      if (!destinations.includes(port)) faults.push(`${name} cannot connect to ${port}`)
    }
    const dns = services[index]?.env.DNSPROVIDER_POWERDNS_URL
    const dnsPort = dns && (new URL(dns).port || '443')
    if (dnsPort && !destinations.includes(`TCP ${dnsPort}`)) faults.push(`${name} cannot connect to PowerDNS`)
    return faults
  })
}

/** The examples of databases. Without another role, the owner serves. */
const findClusterFaults: Check = objects =>
  ofKind(objects, 'Cluster').flatMap(({ spec }) => {
    const { synchronous } = spec.postgresql
    const { owner, postInitApplicationSQL: statements = [] } = spec.bootstrap.initdb
    const faults: string[] = []
    if (synchronous.dataDurability !== 'required' || synchronous.number < 1) faults.push('a promotion can lose writes')
    if (synchronous.number > spec.instances - 2) faults.push('no write is possible while one server is missing')
    for (const { name } of spec.managed?.roles ?? []) {
      if (!statements.some((line: string) => line.startsWith(`create role ${name} `))) faults.push(`no role ${name}`)
    }
    if (spec.managed && !statements.some((line: string) => line.includes(`for role ${owner} `)))
      faults.push('no rights for the service')
    return faults
  })

export const checks = {
  schema: findSchemaFaults,
  config: findConfigFaults,
  lifecycle: findLifecycleFaults,
  references: findReferenceFaults,
  security: findSecurityFaults,
  availability: findAvailabilityFaults,
  network: findNetworkFaults,
  cluster: findClusterFaults,
} satisfies Record<string, Check>

export type CheckName = keyof typeof checks
