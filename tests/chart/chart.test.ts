import { join } from 'node:path'
import { missingPrograms, run } from '@pool/test-kit/kubernetes/programs.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { SECRET_VARIABLES, VARIABLES } from 'allocation-api/src/service-config.ts'
import { knownVariables as knownWitnessVariables } from 'lease-witness/src/node/config.ts'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import {
  chart,
  type KubernetesObject,
  readFile,
  render,
  renderText,
  root,
  toValuesArgs,
  type ValueSet,
  valueSets,
} from './support/chart.ts'

const listRunbooks = (objects: readonly KubernetesObject[]): string[] =>
  objects
    .filter(({ kind, metadata }) => kind === 'PrometheusRule' && metadata.name.endsWith('-alerts'))
    .flatMap(({ spec }) => spec.groups)
    .flatMap(({ rules }) => rules.map(({ annotations }: KubernetesObject['spec']) => annotations.runbook_url))

describe.skipIf(shouldSkip(missingPrograms))('the chart', () => {
  test('helm lint accepts it with each set of values', async () => {
    const { code, stdout, stderr } = await run('helm', [
      ...['lint', '--strict', chart],
      ...valueSets.flatMap(toValuesArgs),
    ])
    expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' })
  })

  test('the address of the runbooks can be a value', async () => {
    const base = 'https://git.example/pool-allocation/blob/v1.0.0'
    const paths = listRunbooks(await render('three-replicas'))
    expect(paths).toContain('docs/runbooks/allocation-api-down.md')
    const urls = listRunbooks(await render('three-replicas', ['--set', `monitoring.runbookBaseUrl=${base}`]))
    expect(urls).toEqual(paths.map(path => `${base}/${path}`))
  })

  test('it has the version of the services', () => {
    const { version, appVersion } = parse(readFile(join(chart, 'Chart.yaml')))
    const manifest = JSON.parse(readFile(join(root, 'package.json')))
    expect([version, appVersion]).toEqual([manifest.version, manifest.version])
  })

  test('its schema has every variable of the services that an operator sets', () => {
    const schema = JSON.parse(readFile(join(chart, 'values.schema.json'))).properties
    const listed = (part: 'api' | 'witness') => {
      const { config, secrets } = schema[part].properties
      return [...Object.keys(config.properties), ...Object.keys(secrets.properties)]
    }
    /** Set by the chart; or of no use in a pod. */
    const others = [
      ...['PORT', 'PDM_OPERATOR_PORT', 'PDM_DRAIN_DELAY', 'PDM_DEPLOYMENTS_DIR', 'PDM_DEPLOYMENT_TIMEOUT'],
      'PDM_TERRAFORM_STOP_TIMEOUT',
      ...['PDM_DEPLOYMENT_CONCURRENCY', 'PDM_TERRAFORM_MODULE', 'PDM_TERRAFORM_BACKEND', 'PDM_TERRAFORM_PASS_ENV'],
      ...['PDM_TERRAFORM_RUNNER', 'PDM_TERRAFORM_ISOLATION', 'PDM_TERRAFORM_PATHS'],
      // The image has one binary. Probes and clients use the address of the pod.
      ...['PDM_TERRAFORM_BINARY', 'PDM_LISTEN_ADDRESS', 'PDM_LOOPBACK_HOSTS_ONLY', 'DNSPROVIDER_DOMAIN'],
      'DNSPROVIDER_LOCAL_PORT',
    ]
    // Those of OpenTelemetry that are not secrets are among the other variables: `api.env`.
    const variables = VARIABLES.filter(
      name => !name.startsWith('OTEL_') || SECRET_VARIABLES.some(secret => secret === name),
    )
    expect([...listed('api'), ...others].toSorted()).toEqual(variables.toSorted())
    const witness = knownWitnessVariables.names.filter(name => !name.endsWith('_FILE'))
    expect([...listed('witness'), 'PORT', 'WITNESS_DRAIN_DELAY', 'WITNESS_LISTEN_ADDRESS'].toSorted()).toEqual(
      witness.toSorted(),
    )
  })

  test('without the witness it has no alert of the witness', async () => {
    const rules = (set: ValueSet) =>
      render(set).then(objects =>
        objects
          .filter(({ kind }) => kind === 'PrometheusRule')
          .flatMap(({ spec }) => spec.groups.map(({ name }: { name: string }) => name)),
      )
    const all = ['alerts', 'recording-rules'].flatMap(name =>
      parse(readFile(join(chart, `files/${name}.yaml`))).groups.map(({ name }: { name: string }) => name),
    )
    expect((await rules('three-replicas')).toSorted()).toEqual(all.toSorted())
    const expected = all.filter(name => !name.startsWith('lease-witness'))
    expect((await rules('deployments')).toSorted()).toEqual(expected.toSorted())
  })

  const digest = `sha256:${'a'.repeat(64)}`
  const reference = '{"name":"pool-allocation-database","key":"url"}'

  test.each([
    ['a misspelt variable', ['api.config.PDM_NAME_COOLOFF="24h"'], "'PDM_NAME_COOLOFF' not allowed"],
    ['a duration in days', ['api.config.PDM_NAME_COOL_OFF="1d"'], '/api/config/PDM_NAME_COOL_OFF'],
    ['the DNS server of development', ['api.config.DNSPROVIDER_KIND="local"'], '/api/config/DNSPROVIDER_KIND'],
    ['another provider without its key', ['api.config.DNSPROVIDER_KIND="dynadot"'], "'DNSPROVIDER_DYNADOT_API_KEY'"],
    ['PowerDNS without a URL', ['api.config.DNSPROVIDER_KIND="powerdns"'], "'DNSPROVIDER_POWERDNS_URL'"],
    ['a secret as plain text', ['api.secrets.PDM_DATABASE_URL="postgres://a:b@c/d"'], '/api/secrets/PDM_DATABASE_URL'],
    ['a secret among other variables', ['api.env.PDM_DATABASE_URL="postgres://a:b@c/d"'], 'PDM_DATABASE_URL'],
    ['a secret among the variables of Terraform', ['api.deployments.env.PDM_LOG_LEVEL="info"'], 'PDM_LOG_LEVEL'],
    ['a secret without a key', ['api.secrets.DNSPROVIDER_DYNADOT_API_KEY={"name":"a"}'], "missing property 'key'"],
    ['an unknown secret', [`api.secrets.PDM_DATABASE_PASSWORD=${reference}`], "'PDM_DATABASE_PASSWORD' not allowed"],
    ['no replica', ['api.replicas=0'], '/api/replicas'],
    ['a drain delay that the service rejects', ['api.drainDelaySeconds=11'], '/api/drainDelaySeconds'],
    [
      'a number that helm writes with an exponent',
      ['api.config.PDM_DATABASE_POOL_SIZE=1000000'],
      'PDM_DATABASE_POOL_SIZE',
    ],
    ['a malformed digest', [`api.image.digest="${digest.slice(1)}"`], '/api/image/digest'],
    ['two backends', ['api.deployments.backend={"s3":{},"gcs":{}}'], '/api/deployments/backend'],
    [
      'an address of the runbooks with a final slash',
      ['monitoring.runbookBaseUrl="https://git.example/"'],
      '/monitoring/runbookBaseUrl',
    ],
    ['an unknown value', ['api.replicaCount=3'], "'replicaCount' not allowed"],
    ['a policy that allows every client', ['api.networkPolicy.clients=[{}]'], '/api/networkPolicy/clients/0'],
    ['a witness without a database', ['witness.enabled=true'], "'WITNESS_DATABASE_URL'"],
    [
      'metrics of the witness without a token',
      [
        `witness={"enabled":true,"secrets":{"WITNESS_DATABASE_URL":${reference},"BEARER_TOKENS_CSV":${reference}}}`,
        'monitoring.enabled=true',
      ],
      "/witness/metricsToken': missing properties 'name', 'key'",
    ],
    ['an Ingress without a host', ['api.ingress={"enabled":true}'], 'api.ingress needs hosts'],
    ['an HTTPRoute without a gateway', ['api.httpRoute={"enabled":true}'], 'api.httpRoute needs parentRefs'],
    ['a variable of the service among more', ['api.extraEnv=[{"name":"PDM_X"}]'], '/api/extraEnv/0/name'],
    [
      'states that an autoscaler would share',
      ['api.replicas=null', 'api.deployments={"enabled":true,"volume":{"persistent":true}}'],
      'api.deployments.backend is required',
    ],
    ['states that replicas do not share', ['api.deployments.enabled=true'], 'api.deployments.backend is required'],
    [
      'a volume that replicas cannot share',
      ['api.replicas=2', 'api.deployments={"enabled":true,"backend":{"s3":{}},"volume":{"persistent":true}}'],
      'api.deployments.volume.persistent must be false',
    ],
  ])('rejects %s', async (_, values, message) => {
    await expect(
      renderText(
        'one-replica',
        values.flatMap(value => ['--set-json', value]),
      ),
    ).rejects.toThrow(message)
  })

  test('on and off need no quotes', async () => {
    const text = await renderText('one-replica', [
      ...['--set-json', 'api.config.PDM_DNS_WRITES=false', '--set-json', 'api.config.PDM_BYO_PROOF=false'],
    ])
    expect(text).toContain('- name: PDM_DNS_WRITES\n              value: "off"')
    expect(text).toContain('- name: PDM_BYO_PROOF\n              value: "off"')
  })

  test('an image can have a registry, a tag or a digest', async () => {
    const images = async (...values: string[]) => [
      ...new Set(
        (
          await renderText(
            'one-replica',
            values.flatMap(value => ['--set', value]),
          )
        ).match(/(?<=image: ).*/g),
      ),
    ]
    expect(await images()).toEqual(['pool-allocation/allocation-api:1.0.0'])
    expect(await images('image.registry=registry.example/team', 'api.image.tag=1.2.3')).toEqual([
      'registry.example/team/pool-allocation/allocation-api:1.2.3',
    ])
    expect(await images(`api.image.digest=${digest}`)).toEqual([`pool-allocation/allocation-api@${digest}`])
  })
})
