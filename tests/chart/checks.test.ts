import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { describe, expect, test } from 'vitest'
import { type KubernetesObject, readDatabaseExample, render, type ValueSet, valueSets } from './support/chart.ts'
import { type CheckName, checks } from './support/checks.ts'
import { listContainers } from './support/pod.ts'
import { missingPrograms } from './support/programs.ts'
import { secrets, toSecrets } from './support/secrets.ts'

const withStates = [
  ...['--set', 'api.replicas=1', '--set', 'api.deployments.volume.persistent=true'],
  ...['--set-json', 'api.deployments.backend=null'],
]

const findFaults = (
  objects: readonly KubernetesObject[],
  set: ValueSet = 'three-replicas',
): Partial<Record<CheckName, string[]>> =>
  Object.fromEntries(
    Object.entries(checks).flatMap(([name, check]) => {
      const faults = check(objects, toSecrets(set))
      return faults.length > 0 ? [[name, faults]] : []
    }),
  )

/** The objects of three replicas with the witness, of deployments with their states on a volume, and the example. */
const installations = {
  replicas: () => render('three-replicas'),
  states: () => render('deployments', withStates),
  example: async () => readDatabaseExample('allocation-api'),
}

interface Mutation {
  readonly mistake: string
  readonly kind: string
  readonly check: CheckName
  readonly in?: keyof typeof installations
  /** The object is that of the allocation API, where there are two of a kind. */
  readonly mutate: (object: KubernetesObject) => void
}

const firstContainer = (deployment: KubernetesObject) => deployment.spec.template.spec.containers[0]
const toEnv = (deployment: KubernetesObject, name: string) =>
  firstContainer(deployment).env.find((variable: { name: string }) => variable.name === name)

const mutations: readonly Mutation[] = [
  {
    mistake: 'a probe of another port',
    kind: 'Deployment',
    check: 'lifecycle',
    mutate: deployment => {
      firstContainer(deployment).readinessProbe.httpGet.port = 8081
    },
  },
  {
    mistake: 'no liveness probe',
    kind: 'Deployment',
    check: 'lifecycle',
    mutate: deployment => {
      delete firstContainer(deployment).livenessProbe
    },
  },
  {
    mistake: 'a port that the service does not use',
    kind: 'Deployment',
    check: 'config',
    mutate: deployment => {
      firstContainer(deployment).ports[0].containerPort = 80
    },
  },
  {
    mistake: 'a Secret that does not exist',
    kind: 'Deployment',
    check: 'config',
    mutate: deployment => {
      deployment.spec.template.spec.volumes[0].projected.sources[0].secret.name = 'pool-allocation-unknown'
    },
  },
  {
    mistake: 'a file that no volume has',
    kind: 'Deployment',
    check: 'config',
    mutate: deployment => {
      toEnv(deployment, 'PDM_DATABASE_URL_FILE').value = '/run/secrets/pool-allocation/url'
    },
  },
  {
    mistake: 'a certificate authority of the database that no volume has',
    kind: 'Deployment',
    check: 'config',
    mutate: deployment => {
      const { volumes } = deployment.spec.template.spec
      volumes.find(({ name }: { name: string }) => name === 'files').projected.sources = []
    },
  },
  {
    mistake: 'a required variable with another name',
    kind: 'Deployment',
    check: 'config',
    mutate: deployment => {
      toEnv(deployment, 'PDM_DATABASE_URL_FILE').name = 'DATABASE_URL_FILE'
    },
  },
  {
    mistake: 'an invalid duration',
    kind: 'Deployment',
    check: 'config',
    mutate: deployment => {
      toEnv(deployment, 'PDM_NAME_COOL_OFF').value = '1 day'
    },
  },
  {
    mistake: 'a grace period shorter than a stop',
    kind: 'Deployment',
    check: 'lifecycle',
    mutate: deployment => {
      deployment.spec.template.spec.terminationGracePeriodSeconds = 20
    },
  },
  {
    mistake: 'a grace period shorter than a deployment',
    kind: 'Deployment',
    check: 'lifecycle',
    in: 'states',
    mutate: deployment => {
      deployment.spec.template.spec.terminationGracePeriodSeconds = 2_700
    },
  },
  {
    mistake: 'no drain hook',
    kind: 'Deployment',
    check: 'lifecycle',
    in: 'states',
    mutate: deployment => {
      delete firstContainer(deployment).lifecycle
    },
  },
  {
    mistake: 'two replicas that share a volume during a rollout',
    kind: 'Deployment',
    check: 'availability',
    in: 'states',
    mutate: deployment => {
      deployment.spec.strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }
    },
  },
  {
    mistake: 'no limit of memory',
    kind: 'Deployment',
    check: 'availability',
    mutate: deployment => {
      delete firstContainer(deployment).resources.limits
    },
  },
  {
    mistake: 'a spread of the pods of another application',
    kind: 'Deployment',
    check: 'references',
    mutate: deployment => {
      deployment.spec.template.spec.topologySpreadConstraints[0].labelSelector.matchLabels['app.kubernetes.io/name'] =
        'x'
    },
  },
  {
    mistake: 'a writable root filesystem',
    kind: 'Deployment',
    check: 'security',
    mutate: deployment => {
      firstContainer(deployment).securityContext.readOnlyRootFilesystem = false
    },
  },
  {
    mistake: 'the root user in the init container',
    kind: 'Deployment',
    check: 'security',
    mutate: deployment => {
      listContainers(deployment.spec.template.spec)[0].securityContext.runAsUser = 0
    },
  },
  {
    mistake: 'a secret in the environment',
    kind: 'Deployment',
    check: 'security',
    mutate: deployment => {
      Object.assign(toEnv(deployment, 'PDM_DATABASE_URL_FILE'), {
        name: 'PDM_DATABASE_URL',
        value: secrets['pool-allocation-database/url'],
      })
    },
  },
  {
    mistake: 'a misspelt field',
    kind: 'Deployment',
    check: 'schema',
    mutate: deployment => {
      firstContainer(deployment).readynessProbe = {}
    },
  },
  {
    mistake: 'a target port that no container has',
    kind: 'Service',
    check: 'references',
    mutate: service => {
      service.spec.ports[0].targetPort = 'web'
    },
  },
  {
    mistake: 'a selector without pods',
    kind: 'Service',
    check: 'references',
    mutate: service => {
      service.spec.selector['app.kubernetes.io/name'] = 'api'
    },
  },
  {
    mistake: 'another name than the pods use',
    kind: 'ServiceAccount',
    check: 'references',
    mutate: account => Object.assign(account.metadata, { name: 'default' }),
  },
  {
    mistake: 'a mounted token',
    kind: 'ServiceAccount',
    check: 'security',
    mutate: account => {
      account.automountServiceAccountToken = true
    },
  },
  {
    mistake: 'no eviction at all',
    kind: 'PodDisruptionBudget',
    check: 'availability',
    mutate: budget => {
      budget.spec.maxUnavailable = 0
    },
  },
  {
    mistake: 'a selector without pods',
    kind: 'PodDisruptionBudget',
    check: 'availability',
    mutate: budget => {
      budget.spec.selector.matchLabels['app.kubernetes.io/instance'] = 'other'
    },
  },
  {
    mistake: 'every client',
    kind: 'NetworkPolicy',
    check: 'network',
    mutate: policy => {
      policy.spec.ingress[0].from = []
    },
  },
  {
    mistake: 'a port that nothing serves',
    kind: 'NetworkPolicy',
    check: 'network',
    mutate: policy => {
      policy.spec.ingress[0].ports[0].port = 80
    },
  },
  {
    mistake: 'no connection to Postgres',
    kind: 'NetworkPolicy',
    check: 'network',
    mutate: policy => {
      policy.spec.egress.splice(1, 1)
    },
  },
  {
    mistake: 'any destination',
    kind: 'NetworkPolicy',
    check: 'network',
    mutate: policy => {
      policy.spec.policyTypes = ['Ingress']
    },
  },
  {
    mistake: 'another name than the pods use',
    kind: 'PersistentVolumeClaim',
    check: 'references',
    in: 'states',
    mutate: claim => Object.assign(claim.metadata, { name: 'states' }),
  },
  {
    mistake: 'an unknown access mode',
    kind: 'PersistentVolumeClaim',
    check: 'schema',
    in: 'states',
    mutate: claim => {
      claim.spec.accessMode = ['ReadWriteOnce']
    },
  },
  {
    mistake: 'a port that no Service has',
    kind: 'ServiceMonitor',
    check: 'references',
    mutate: monitor => {
      monitor.spec.endpoints[0].port = 'metrics'
    },
  },
  {
    mistake: 'a misspelt field',
    kind: 'ServiceMonitor',
    check: 'schema',
    mutate: monitor => {
      monitor.spec.endpoints[0].scrapeInterval = '30s'
    },
  },
  {
    mistake: 'a Secret that does not exist',
    kind: 'ServiceMonitor',
    check: 'config',
    mutate: monitor => {
      monitor.spec.endpoints[0].authorization = { credentials: { name: 'unknown', key: 'token' } }
    },
  },
  {
    mistake: 'a rule without an expression',
    kind: 'PrometheusRule',
    check: 'schema',
    mutate: rule => {
      rule.spec.groups = [{ name: 'allocation-api', rules: [{ alert: 'AllocationApiDown' }] }]
    },
  },
  {
    mistake: 'asynchronous replication',
    kind: 'Cluster',
    check: 'cluster',
    in: 'example',
    mutate: cluster => {
      cluster.spec.postgresql.synchronous.dataDurability = 'preferred'
    },
  },
  {
    mistake: 'a misspelt field',
    kind: 'Cluster',
    check: 'schema',
    in: 'example',
    mutate: cluster => {
      cluster.spec.instanceCount = 3
    },
  },
]

describe.skipIf(shouldSkip(missingPrograms))('checks of the manifests', () => {
  test.each(valueSets)('%s: none finds a fault', async set => {
    expect(findFaults(await render(set), set)).toEqual({})
  })

  test('deployments with their states on a volume, and the examples of databases: none finds a fault', async () => {
    expect(findFaults(await installations.states(), 'deployments')).toEqual({})
    expect(findFaults(await installations.example())).toEqual({})
    expect(findFaults(readDatabaseExample('lease-witness'))).toEqual({})
  })

  describe('find the mistakes', async () => {
    const rendered = shouldSkip(missingPrograms)
      ? null
      : {
          replicas: await installations.replicas(),
          states: await installations.states(),
          example: await installations.example(),
        }

    test.each(mutations)('$kind: $mistake', ({ kind, check, mutate, in: installation = 'replicas' }) => {
      const objects = structuredClone(rendered?.[installation] ?? [])
      const object = objects.find(candidate => candidate.kind === kind)
      if (!object) throw new Error(`no ${kind}`)
      mutate(object)
      expect(Object.keys(findFaults(objects, installation === 'states' ? 'deployments' : 'three-replicas'))).toContain(
        check,
      )
    })

    test('every kind has a mistake', () => {
      const kinds = new Set(Object.values(rendered ?? {}).flatMap(objects => objects.map(({ kind }) => kind)))
      expect([...kinds].filter(kind => !mutations.some(mutation => mutation.kind === kind))).toEqual([])
    })
  })
})
