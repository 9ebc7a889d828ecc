import { missingPrograms } from '@pool/test-kit/kubernetes/programs.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { describe, expect, test } from 'vitest'
import { type KubernetesObject, readDatabaseExample, render, type ValueSet, valueSets } from './support/chart.ts'
import { type CheckName, checks } from './support/checks.ts'
import { listContainers, secrets, toSecrets } from './support/pod.ts'

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

/** One mistake for each check at least, which shows that the check looks at something. */
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
    mistake: 'a Secret that does not exist',
    kind: 'Deployment',
    check: 'config',
    mutate: deployment => {
      deployment.spec.template.spec.volumes[0].projected.sources[0].secret.name = 'pool-allocation-unknown'
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
    mistake: 'two replicas that share a volume during a rollout',
    kind: 'Deployment',
    check: 'availability',
    in: 'states',
    mutate: deployment => {
      deployment.spec.strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } }
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
    mistake: 'the secrets of the service in the container of Terraform',
    kind: 'Deployment',
    check: 'security',
    in: 'states',
    mutate: deployment => {
      const [migration, terraform] = listContainers(deployment.spec.template.spec)
      terraform.volumeMounts.push(migration.volumeMounts[0])
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
    mistake: 'every client',
    kind: 'NetworkPolicy',
    check: 'network',
    mutate: policy => {
      policy.spec.ingress[0].from = []
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

    test('every check has a mistake', () => {
      expect(Object.keys(checks).filter(name => !mutations.some(({ check }) => check === name))).toEqual([])
    })
  })
})
