import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ApiServer, missingApiServer, startApiServer } from '@pool/test-kit/kubernetes/api-server.ts'
import { until } from '@pool/test-kit/poll.ts'
import { reportProof } from '@pool/test-kit/proof-size.ts'
import { parseShellBlocks } from '@pool/test-kit/shell-blocks.ts'
import { readConfig as readWitnessConfig } from 'lease-witness/src/node/config.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  chart,
  type KubernetesObject,
  RELEASE,
  readDatabaseExample,
  readFile,
  render,
  root,
  toSetArgs,
  toValuesArgs,
  toValuesFile,
  valueSets,
} from './support/chart.ts'
import { findPodSecurityFaults } from './support/checks.ts'
import { restrictedV2, toRestrictedV2Policy } from './support/openshift.ts'
import { findDeployments, listContainers, listMountedKeys } from './support/pod.ts'
import { valueCases } from './support/value-table.ts'

if (missingApiServer) process.stderr.write(`Skipped: ${missingApiServer}\n`)

const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()

/** The chart of the commit that added a file, or of its parent. */
const checkOutChart = (folder: string, file: string, parent = ''): string => {
  const commit = git('log', '--diff-filter=A', '--format=%H', '--', `infra/chart/${file}`).split('\n').at(-1) ?? ''
  const archive = execFileSync('git', ['archive', `${commit}${parent}`, 'infra/chart'], { cwd: root })
  execFileSync('tar', ['--extract', '--directory', folder], { input: archive })
  return join(folder, 'infra/chart')
}

const page = join(root, 'docs/install/kubernetes.md')

/** The file in a page of the documentation that has an object of a kind. */
const readExample = (kind: string, file = page): string => {
  const example = Array.from(readFile(file).matchAll(/```yaml\n(.*?)```/gs), ([, block]) => block ?? '').find(block =>
    block.includes(`kind: ${kind}\n`),
  )
  if (!example) throw new Error(`${file} has no ${kind}`)
  return example
}

/** The namespace of the pods that are only tried. */
const PODS = 'pods'

const KINDS = [
  ...[
    'deployments',
    'services',
    'serviceaccounts',
    'poddisruptionbudgets',
    'networkpolicies',
    'persistentvolumeclaims',
  ],
  ...['servicemonitors', 'prometheusrules', 'ingresses', 'httproutes', 'horizontalpodautoscalers'],
].join(',')

const toPod = ({ metadata, spec }: KubernetesObject) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: metadata.name, labels: spec.template.metadata.labels },
  spec: spec.template.spec,
})

/** Changes of a pod that the pod security standard forbids. */
const forbidden: readonly (readonly [string, (spec: KubernetesObject['spec']) => void])[] = [
  ['the root user', spec => Object.assign(spec.securityContext, { runAsNonRoot: false, runAsUser: 0 })],
  ['no seccomp profile', spec => delete spec.securityContext.seccompProfile],
  ['a network of the host', spec => Object.assign(spec, { hostNetwork: true })],
  ['processes of the host', spec => Object.assign(spec, { hostPID: true })],
  ['a folder of the host', spec => spec.volumes.push({ name: 'host', hostPath: { path: '/' } })],
  [
    'privileges',
    spec => Object.assign(spec.containers[0].securityContext, { privileged: true, allowPrivilegeEscalation: true }),
  ],
  ['more privileges', spec => delete spec.containers[0].securityContext.allowPrivilegeEscalation],
  ['capabilities', spec => delete spec.containers[0].securityContext.capabilities],
  ['capabilities of the init container', spec => delete spec.initContainers[0].securityContext.capabilities],
  ['another capability', spec => Object.assign(spec.containers[0].securityContext.capabilities, { add: ['NET_RAW'] })],
  ['a port of the host', spec => Object.assign(spec.containers[0].ports[0], { hostPort: 8_080 })],
]

describe.skipIf(missingApiServer !== undefined)('a Kubernetes API server', () => {
  let server: ApiServer
  let folder: string
  /** Where the commands of the documentation run. */
  let work: string
  let token: string

  const kubectl = async (args: readonly string[], input?: string): Promise<string> => {
    const { code, stdout, stderr } = await server.kubectl(args, input)
    expect(code, stderr).toBe(0)
    return stdout
  }
  const helm = async (...args: string[]) => {
    const { code, stderr } = await server.helmAs(token, [...args, '--namespace', RELEASE])
    expect(code, stderr).toBe(0)
  }
  const listObjects = async () =>
    (await kubectl(['get', KINDS, '--output', 'name'])).split('\n').filter(Boolean).toSorted()

  /** An uninstallation keeps the volumes. */
  const listWithoutVolumes = async () =>
    (await listObjects()).filter(name => !name.startsWith('persistentvolumeclaim/'))

  /**
   * Runs commands of the documentation, without those that need controllers and a kubelet: as an administrator, or with the
   * token of a ServiceAccount.
   */
  const runCommands = async (isIncluded: (block: string) => boolean, account?: string): Promise<string> => {
    const script = parseShellBlocks(readFile(page))
      .map(({ code }) => code)
      .filter(isIncluded)
      .join('\n')
      .split('\n')
      .filter(line => !/ rollout | wait | port-forward | exec /.test(line))
      .join('\n')
    const { code, stdout, stderr } = await server.bash(script, work, account)
    expect(code, `${script}\n${stderr}`).toBe(0)
    return stdout
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pool-chart-'))
    work = join(folder, 'work')
    await mkdir(work)
    await symlink(join(root, 'infra'), join(work, 'infra'))
    server = await startApiServer()
    await writeFile(join(work, 'roles.yaml'), readExample('Role'))
    await runCommands(block => /create namespace|create rolebinding/.test(block))
    await kubectl(['create', 'namespace', 'pipelines'])
    await kubectl(['create', 'serviceaccount', 'deployer', '--namespace', 'pipelines'])
    token = (await kubectl(['create', 'token', 'deployer', '--namespace', 'pipelines'])).trim()
  }, 180_000)

  afterAll(async () => {
    await server?.stop()
    if (folder) await rm(folder, { recursive: true })
  })

  test('a strict dry run of what the chart renders and of the examples of databases', async () => {
    const objects = [
      ...(await render('three-replicas')),
      ...readDatabaseExample('allocation-api'),
      ...readDatabaseExample('lease-witness'),
    ]
    const dryRun = ['apply', '--server-side', '--dry-run=server', '--validate=strict', '--filename', '-']
    await kubectl(dryRun, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
    const accepted = server
      .readAudit()
      .filter(({ requestURI }) => requestURI.includes('dryRun=All') && requestURI.includes('fieldValidation=Strict'))
      .map(({ objectRef, responseStatus }) => `${objectRef?.resource} ${objectRef?.name} ${responseStatus.code}`)
    expect(accepted).toHaveLength(objects.length)
    expect(accepted.every(line => line.endsWith(' 201'))).toBe(true)
    expect(await listObjects()).toEqual([])
    reportProof(`dry run: ${accepted.join(', ')}`)

    const [deployment] = objects.filter(({ kind }) => kind === 'Deployment')
    const misspelt = { ...deployment, spec: { ...deployment?.spec, replica: 3 } }
    const { code, stderr } = await server.kubectl(dryRun, JSON.stringify(misspelt))
    expect([code, stderr]).toEqual([1, expect.stringContaining('.spec.replica: field not declared in schema')])
  })

  test('the namespace accepts each pod, and rejects what our own check rejects', async () => {
    const create = (pod: object) =>
      server.kubectl(
        ['create', '--namespace', PODS, '--dry-run=server', '--validate=strict', '--filename', '-'],
        JSON.stringify(pod),
      )
    await kubectl(['create', 'namespace', PODS])
    await kubectl(['label', 'namespace', PODS, 'pod-security.kubernetes.io/enforce=restricted'])
    for (const name of ['api', 'witness']) {
      await kubectl(['create', 'serviceaccount', `${RELEASE}-${name}`, '--namespace', PODS])
    }
    const pods = (await Promise.all(valueSets.map(set => render(set)))).flatMap(findDeployments).map(toPod)
    expect(pods).toHaveLength(8)
    for (const pod of pods) {
      const { code, stderr } = await create(pod)
      expect([code, findPodSecurityFaults(pod.spec)], stderr).toEqual([0, []])
    }
    for (const [mistake, mutate] of forbidden) {
      const pod = structuredClone(pods[0])
      mutate(pod?.spec)
      const { code, stderr } = await create(pod ?? {})
      expect([code, stderr], mistake).toEqual([1, expect.stringContaining('violates PodSecurity "restricted')])
      expect(findPodSecurityFaults(pod?.spec), mistake).not.toEqual([])
    }
  })

  test('accepts the route of the page on records of tenants, whose timeout is longer than a write waits', async () => {
    const route = readExample('HTTPRoute', join(root, 'docs/operate/records.md'))
    const applied = await kubectl(['apply', '--dry-run=server', '--validate=strict', '-o', 'json', '-f', '-'], route)
    const [rule] = JSON.parse(applied).spec.rules
    expect(rule.matches).toEqual([{ path: { type: 'PathPrefix', value: '/api/v1/records' } }])
    expect(Number.parseInt(rule.timeouts.request, 10)).toBeGreaterThan(20)
  })

  test.each(valueSets)(
    '%s: install, upgrade from the first chart, roll back and uninstall with the rights of the docs',
    async set => {
      const values = toValuesArgs(set)
      await helm('install', RELEASE, chart, ...values)
      const installed = await listObjects()
      expect(installed).toHaveLength((await render(set)).length)
      await helm('uninstall', RELEASE)
      expect(await listObjects()).toEqual([])

      const first = checkOutChart(folder, 'Chart.yaml')
      const other = set === 'one-replica' ? 'deployments' : 'one-replica'
      await helm('install', RELEASE, first, '--values', join(first, 'values', `${other}.yaml`))
      const before = await listObjects()
      expect(before).not.toEqual(installed)
      await helm('upgrade', RELEASE, chart, ...values)
      expect(await listObjects()).toEqual(installed)
      await helm('rollback', RELEASE, '1')
      expect(await listObjects()).toEqual(before)
      await helm('uninstall', RELEASE)
      expect(await listObjects()).toEqual([])

      const requests = server
        .readAudit()
        .filter(({ user }) => user.username === 'system:serviceaccount:pipelines:deployer')
      expect(requests.filter(({ responseStatus }) => responseStatus.code === 403)).toEqual([])
      reportProof(`helm install with ${set}.yaml: ${installed.join(', ')}`)
    },
  )

  test.each(valueCases)('$title: install, upgrade and uninstall', async ({ values }) => {
    const args = [RELEASE, chart, ...toValuesArgs('three-replicas')]
    const set = toSetArgs(values)
    await helm('install', ...args, ...set)
    await helm('upgrade', ...args)
    await helm('upgrade', ...args, ...set)
    const rendered = (await render('three-replicas', set)).filter(({ kind }) => kind !== 'ConfigMap')
    expect(await listWithoutVolumes()).toHaveLength(rendered.length)
    await helm('uninstall', RELEASE)
    expect(await listWithoutVolumes()).toEqual([])
  })

  test('--reuse-values from the chart before its newer values changes nothing, and an autoscaler keeps its replicas', async () => {
    const before = checkOutChart(folder, 'templates/_values.tpl', '^')
    const readSpec = async (name: string) =>
      JSON.parse(await kubectl(['get', 'deployment', name, '--output', 'json'])).spec
    const names = ['pool-allocation-api', 'pool-allocation-witness']
    await helm('install', RELEASE, before, ...toValuesArgs('three-replicas'))
    const specs = await Promise.all(names.map(readSpec))
    await helm('upgrade', RELEASE, chart, '--reuse-values')
    expect(await Promise.all(names.map(readSpec))).toEqual(specs)
    await kubectl(['scale', 'deployment/pool-allocation-api', '--replicas=4', '--namespace', RELEASE])
    await helm('upgrade', RELEASE, chart, ...toValuesArgs('three-replicas'), '--set-json', 'api.replicas=null')
    expect((await readSpec(names[0] ?? '')).replicas).toBe(4)
    await helm('uninstall', RELEASE)
  })

  test('restricted-v2 of OpenShift as an admission policy accepts and rejects what our own check does', async () => {
    const namespace = 'openshift'
    await kubectl(['create', 'namespace', namespace])
    for (const name of ['api', 'witness'])
      await kubectl(['create', 'serviceaccount', `${RELEASE}-${name}`, '--namespace', namespace])
    const items = toRestrictedV2Policy(namespace)
    await kubectl(['create', '--filename', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
    const tryPod = (pod: object) =>
      server.kubectl(['create', '--namespace', namespace, '--dry-run=server', '--filename', '-'], JSON.stringify(pod))
    const [fixed] = findDeployments(await render('three-replicas')).map(toPod)
    // A policy takes effect some time after its creation.
    await until('the policy rejects a pod', async () => (await tryPod(fixed ?? {})).code !== 0)
    const pods = findDeployments(await render('openshift')).map(toPod)
    for (const pod of pods) expect(await tryPod(pod)).toMatchObject({ code: 0 })
    for (const { message, mistake } of restrictedV2) {
      const pod = structuredClone(pods[0])
      mistake(pod?.spec)
      const { code, stderr } = await tryPod(pod ?? {})
      expect([code, stderr]).toEqual([1, expect.stringContaining(message)])
    }
  })

  test('an uninstallation keeps the volume of the states', async () => {
    const values = [
      ...['--values', toValuesFile('deployments'), '--set', 'api.replicas=1'],
      ...['--set', 'api.deployments.volume.persistent=true', '--set-json', 'api.deployments.backend=null'],
    ]
    for (const args of [
      ['install', RELEASE, chart, ...values],
      ['uninstall', RELEASE],
      ['install', RELEASE, chart, ...values],
    ]) {
      const { code, stderr } = await server.helmAs(token, [...args, '--namespace', RELEASE])
      expect(code, stderr).toBe(0)
      expect(await listObjects()).toContain('persistentvolumeclaim/pool-allocation-api')
    }
    await server.helmAs(token, ['uninstall', RELEASE, '--namespace', RELEASE])
  })

  test('the commands of the documentation create each Secret and ConfigMap, and install, upgrade, roll back and uninstall', async () => {
    await copyFile(toValuesFile('three-replicas'), join(work, 'my-values.yaml'))
    for (const name of ['powerdns-api-key.txt', 'powerdns-ca.crt']) await writeFile(join(work, name), 'x')
    await runCommands(block => /apply --filename infra/.test(block))
    // The operator of the databases creates them.
    const uri = 'postgresql://lease_witness:x@lease-witness-postgres-rw.pool-allocation:5432/lease_witness'
    for (const [name, value] of [
      ['pool-allocation-postgres-app', 'password=x'],
      ['pool-allocation-postgres-ca', 'ca.crt=x'],
      ['lease-witness-postgres-app', `uri=${uri}`],
      ['lease-witness-postgres-ca', 'ca.crt=x'],
    ] as const)
      await kubectl(['create', 'secret', 'generic', name, `--from-literal=${value}`])
    const isSecret = (block: string) =>
      /create (?:secret|configmap)/.test(block) && !/apply --filename infra/.test(block)
    await runCommands(isSecret, token)
    expect(await readdir(work)).toEqual(['client-token.txt', 'infra', 'my-values.yaml', 'roles.yaml'])
    const { items } = JSON.parse(await kubectl(['get', 'secrets,configmaps', '--output', 'json']))
    const created = items.flatMap(({ kind, metadata, data }: KubernetesObject) =>
      Object.keys(data ?? {}).map(key => `${kind} ${metadata.name} ${key}`),
    )
    const objects = await render('three-replicas')
    const files = findDeployments(objects).flatMap(({ spec: { template } }) =>
      listContainers(template.spec).flatMap(container => [...listMountedKeys(template.spec, container).values()]),
    )
    const needed = files.map(
      ({ kind, object, key }) => `${kind === 'secret' ? 'Secret' : 'ConfigMap'} ${object} ${key}`,
    )
    expect(created).toEqual(expect.arrayContaining(needed))

    const [database, policies, metricsToken] = await Promise.all(
      [
        ['lease-witness-database', 'url'],
        ['lease-witness-tokens', 'policies'],
        ['lease-witness-metrics', 'token'],
      ].map(async ([name, key]) => {
        const { data } = JSON.parse(await kubectl(['get', 'secret', name ?? '', '--output', 'json']))
        return Buffer.from(data[key ?? ''], 'base64').toString()
      }),
    )
    const parsed = readWitnessConfig({ WITNESS_DATABASE_URL: database, TOKEN_POLICIES: policies })
    expect(parsed).not.toHaveProperty('issues')
    const hashes = [readFile(join(work, 'client-token.txt')), metricsToken ?? ''].map(
      text => `sha256:${createHash('sha256').update(text).digest('hex')}`,
    )
    expect(JSON.parse(policies ?? '').map(({ token: hash }: { token: string }) => hash)).toEqual(hashes)

    const output = await runCommands(block => /helm (?:install|upgrade|history|uninstall)/.test(block), token)
    expect(output).toMatch(/Install complete.*Upgrade complete.*Rollback was a success.*uninstalled/s)
    expect(await listWithoutVolumes()).toEqual([])

    await runCommands(block => block.includes('delete --ignore-not-found secret'), token)
    const left = await kubectl(['get', 'secrets,configmaps', '--output', 'jsonpath={.items[*].metadata.name}'])
    expect(left.split(' ').filter(name => !/-postgres-(?:app|ca)$/.test(name))).toEqual([])
  })

  test('the commands of the documentation install and uninstall without a release of Helm', async () => {
    await runCommands(block => block.includes('apply --filename manifests.yaml'), token)
    expect(await listWithoutVolumes()).toHaveLength((await render('three-replicas')).length)
    await runCommands(block => block.includes('delete --filename manifests.yaml'), token)
    expect(await listWithoutVolumes()).toEqual([])
  })

  test('after kubectl scale, helm upgrade and rollback need --force-conflicts, unless no replica is left', async () => {
    const upgrade = ['upgrade', '--install', RELEASE, chart, '--namespace', RELEASE, ...toValuesArgs('one-replica')]
    const scale = (replicas: number) =>
      kubectl(['scale', 'deployment/pool-allocation-api', `--replicas=${replicas}`, '--namespace', RELEASE])
    const conflict = [1, expect.stringContaining('.spec.replicas')]
    const helm = async (...args: string[]) => {
      const { code, stderr } = await server.helmAs(token, args)
      return [code, stderr]
    }
    expect((await helm(...upgrade))[0]).toBe(0)
    await scale(2)
    expect(await helm(...upgrade)).toEqual(conflict)
    expect(await helm('rollback', RELEASE, '1', '--namespace', RELEASE)).toEqual(conflict)
    expect((await helm(...upgrade, '--force-conflicts'))[0]).toBe(0)
    await scale(0)
    expect(await helm(...upgrade)).toEqual([0, ''])
    await helm('uninstall', RELEASE, '--namespace', RELEASE)
  })

  test('the rights of the docs are those of the commands in the docs', async () => {
    await kubectl(['create', 'serviceaccount', 'operator', '--namespace', 'pipelines'])
    await kubectl([
      ...['create', 'rolebinding', 'operator', '--role=pool-allocation-operator'],
      '--serviceaccount=pipelines:operator',
    ])
    const listRights = (account: string) =>
      kubectl(['auth', 'can-i', '--list', '--no-headers', `--as=system:serviceaccount:pipelines:${account}`])
    const toRights = (text: string) =>
      text.split('\n').flatMap(line => {
        const [, resource, verbs] = /^(\S+) .*\[(.*)\]$/.exec(line) ?? []
        return (verbs ?? '').split(' ').map(verb => `${verb} ${resource}`)
      })
    const installer = toRights(await listRights('deployer'))
    expect(installer).toEqual(
      expect.arrayContaining([
        ...['get secrets', 'create secrets', 'update secrets', 'patch secrets', 'create configmaps'],
        ...['list pods', 'watch pods', 'list replicasets.apps', 'watch replicasets.apps'],
        ...['get pods/log', 'list events'],
      ]),
    )
    expect(installer).not.toContain('create pods/exec')
    const operator = toRights(await listRights('operator'))
    const needed = [
      ...['get deployments.apps', 'watch deployments.apps', 'patch deployments.apps', 'patch deployments.apps/scale'],
      ...['get pods', 'list pods', 'get pods/log', 'list events', 'list replicasets.apps', 'get services'],
      ...['create pods/exec', 'get pods/exec', 'create pods/portforward', 'get pods/portforward'],
      ...['get clusters.postgresql.cnpg.io', 'delete pods'],
    ]
    expect(operator).toEqual(expect.arrayContaining(needed))
    expect(operator.filter(right => right.endsWith(' secrets'))).toEqual([])
  })

  test('without the rights of the docs nothing is installed', async () => {
    await kubectl(['create', 'serviceaccount', 'other', '--namespace', 'pipelines'])
    const other = (await kubectl(['create', 'token', 'other', '--namespace', 'pipelines'])).trim()
    const args = ['install', 'other', chart, '--namespace', RELEASE, '--values', toValuesFile('one-replica')]
    const { code, stderr } = await server.helmAs(other, args)
    expect([code, stderr]).toEqual([1, expect.stringContaining('forbidden')])
  })
})
