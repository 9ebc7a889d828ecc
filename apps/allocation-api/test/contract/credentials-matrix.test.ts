import { createHash, randomUUID } from 'node:crypto'
import { isRecordsPath, type OperationId, operationList } from '@pool/contract'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { poolPath, unknownToken } from '../support/service.ts'

const OPERATOR_TOKEN = 'operator-token-of-the-matrix'
const env = {
  PDM_OPERATOR_TOKENS: OPERATOR_TOKEN,
  PDM_SWEEPER_INTERVAL: '1h',
  PDM_DNS_COMMIT_WAIT: '1m',
  PDM_TEST_SETTINGS: JSON.stringify({ validationAttempts: 100_000 }),
}
const database = await createTestDatabase({ connections: 2 })
const modes = {
  optional: await startApi(database.url, env),
  required: await startApi(database.url, { ...env, PDM_RELEASE_TOKEN: 'required' }),
} satisfies Record<string, Api>
afterAll(async () => {
  await Promise.all(Object.values(modes).map(api => api.process.stop()))
  await database.drop()
})

type Mode = keyof typeof modes
const listeners = ['in-cluster', 'operator'] as const
const credentials = ['none', 'wrong', "another tenant's", 'right'] as const
type Credential = (typeof credentials)[number]

interface Tenant {
  readonly subdomain: string
  readonly reservationToken: string
  readonly deploymentId: string
  readonly deploymentToken: string
}

const hash = (text: string) => createHash('sha256').update(text).digest()
let tenants = 0

/** A tenant with a name in this state, and with a deployment, which holds the name if `isHeld`. */
const createTenant = async (state: 'reserved' | 'active', isHeld = false): Promise<Tenant> => {
  tenants += 1
  const subdomain = `tenant-${tenants}`
  const fqdn = `${subdomain}.pool.test`
  const { body } = await modes.optional.call('POST', `${poolPath}/reserve`, { subdomain })
  const { reservationToken } = body
  const target = { subdomain, reservationToken, sovereignFQDN: fqdn, loadBalancerIP: '192.0.2.1' }
  if (state === 'active') expect((await modes.optional.call('POST', `${poolPath}/commit`, target)).status).toBe(200)
  const [deploymentId, lineageId, deploymentToken] = [randomUUID(), randomUUID(), randomUUID()]
  const { sql } = database
  await sql`
    insert into lineages (id, sovereign_fqdn, pool_domain, subdomain, infrastructure_changed_at, created_at)
    values (${lineageId}, ${fqdn}, 'pool.test', ${subdomain}, now(), now())`
  const request = { orgName: 'Acme', sovereignFQDN: fqdn, providers: ['local'], region: 'fsn1', storage: null }
  const keys = { orgEmail: 'ops@acme.example', objectStorageAccessKey: '', objectStorageSecretKey: '' }
  const name = { poolDomain: 'pool.test', subdomain }
  const tokenHash = isHeld ? hash(reservationToken) : hash(randomUUID())
  await sql`
    insert into deployments
      (id, lineage_id, status, request, sovereign_fqdn, reservation_token_hash, token_hash, error, started_at, finished_at)
    values (${deploymentId}, ${lineageId}, 'failed', ${sql.json({ ...request, ...keys, name })}, ${fqdn}, ${tokenHash},
      ${hash(deploymentToken)}, 'no', now(), now())`
  if (isHeld) await sql`update pool_allocations set lineage_id = ${lineageId} where subdomain = ${subdomain}`
  return { subdomain, reservationToken, deploymentId, deploymentToken }
}

const other = await createTenant('active', true)
const bystander = await createTenant('active', true)

/** What a client sends, by where it belongs: the in-cluster listener ignores what no route of it reads. */
const toTokens = (credential: Credential, own: Tenant) =>
  credential === 'none'
    ? null
    : {
        wrong: { operator: 'no-token-of-anyone-here', reservation: unknownToken, deployment: unknownToken },
        "another tenant's": {
          operator: other.deploymentToken,
          reservation: other.reservationToken,
          deployment: other.deploymentToken,
        },
        right: { operator: OPERATOR_TOKEN, reservation: own.reservationToken, deployment: own.deploymentToken },
      }[credential]

type Tokens = ReturnType<typeof toTokens>

/** How an operation of the in-cluster listener is guarded. Operations that are not here are open to every client. */
const guards: Partial<Record<OperationId, 'reserved' | 'active' | 'deployment'>> = {
  mintToken: 'reserved',
  commitName: 'reserved',
  renewReservation: 'reserved',
  updateName: 'active',
  removeDeployment: 'deployment',
  applyDeployment: 'deployment',
  planDeployment: 'deployment',
  destroyDeployment: 'deployment',
}

const send = async (
  api: Api,
  listener: (typeof listeners)[number],
  { method, path }: { readonly method: string; readonly path: string },
  credential: Credential,
  own: Tenant,
  { body, headers = {} }: { readonly body?: object | null | undefined; readonly headers?: object } = {},
) => {
  const tokens = toTokens(credential, own)
  const url = listener === 'operator' ? api.operatorUrl : api.url
  const target = path
    .replace('{domain}', 'pool.test')
    .replace('{subdomain}', own.subdomain)
    .replace('{id}', own.deploymentId)
    .replace('{bucket}', 'no-bucket')
    .replace('{asset}', 'start.js')
  const response = await fetch(`${url}${target}`, {
    method: method.toUpperCase(),
    headers: { ...(tokens && { Authorization: `Bearer ${tokens.operator}` }), ...headers },
    ...(method === 'get' ? {} : { body: JSON.stringify(body ?? {}) }),
  })
  // Some of them never end.
  await response.body?.cancel()
  return response.status
}

describe.each(Object.keys(modes) as Mode[])('PDM_RELEASE_TOKEN=%s', mode => {
  const api = modes[mode]

  // What tools of tenants call accepts records tokens only: contract/records-tokens. The deletion of one is guarded as its mint.
  const operations = operationList.filter(({ id, path }) => !isRecordsPath(path) && id !== 'deleteToken')
  test.each(operations.map(operation => [operation.id, operation] as const))(
    '%s: each listener, each credential',
    async (id, operation) => {
      const guard = guards[id as OperationId]
      const isByName = guard === 'reserved' || guard === 'active'
      /** The requests of open operations change nothing, so one tenant is enough for them. */
      const toOwn = () => (guard ? createTenant(guard === 'reserved' ? 'reserved' : 'active', true) : bystander)
      const toBody = ({ subdomain }: Tenant, tokens: Tokens) => ({
        subdomain,
        loadBalancerIP: '192.0.2.2',
        sovereignFQDN: `${subdomain}.pool.test`,
        scope: 'acme',
        ...(tokens && isByName && { reservationToken: tokens.reservation }),
      })
      for (const credential of credentials) {
        const own = await toOwn()
        const isSignIn = id === 'startSession'
        const tokens = toTokens(credential, own)
        const body = isSignIn ? tokens && { token: tokens.operator } : guard && toBody(own, toTokens('right', own))
        const status = await send(api, 'operator', operation, isSignIn ? 'none' : credential, own, { body })
        const cell = `operator listener, credential: ${credential}`
        if (credential === 'right') expect([401, 403, 405], cell).not.toContain(status)
        else expect(status, cell).toBe(isSignIn && credential === 'none' ? 422 : 401)
      }
      for (const credential of credentials) {
        const own = await toOwn()
        const tokens = toTokens(credential, own)
        const headers: object = tokens && guard === 'deployment' ? { 'X-Deployment-Token': tokens.deployment } : {}
        const body = guard && toBody(own, tokens)
        const status = await send(api, 'in-cluster', operation, credential, own, { body, headers })
        const cell = `in-cluster listener, credential: ${credential}`
        if (operation.listener === 'operator') expect([404, 405], cell).toContain(status)
        else if (guard === undefined) {
          expect([401, 403], cell).not.toContain(status)
          expect(status, cell).toBe(await send(api, 'in-cluster', operation, 'none', own))
        } else if (credential === 'right') expect([401, 403, 404, 422], cell).not.toContain(status)
        else expect(status, cell).toBe(credential === 'none' && isByName && id !== 'mintToken' ? 422 : 403)
      }
    },
  )

  describe.each(listeners)('releaseName, %s listener', listener => {
    const isFree = listener === 'operator' || mode === 'optional'

    /** With the token of the reservation in the body, or with that of the deployment that holds the name. */
    const release = async (
      form: 'body' | 'query' | 'deployment',
      credential: Credential,
      own: Tenant,
      dryRun: boolean,
    ) => {
      const tokens = toTokens(credential, own)
      const asBody = form === 'body' && { subdomain: own.subdomain }
      const query = new URLSearchParams({
        ...(form !== 'body' && { sub: own.subdomain }),
        ...(dryRun && { dryRun: 'true' }),
      })
      const path = `${poolPath}/release?${query}`
      const body = { ...asBody, ...(tokens && form !== 'deployment' && { reservationToken: tokens.reservation }) }
      const headers = tokens && form === 'deployment' ? { 'X-Deployment-Token': tokens.deployment } : {}
      const from = listener === 'operator' ? 'right' : credential
      return send(api, listener, { method: 'DELETE', path }, from, own, { body, headers })
    }
    const stateOf = async ({ subdomain }: Tenant) =>
      (await modes.optional.call('GET', `${poolPath}/check?sub=${subdomain}`)).body.reason ?? 'free'

    describe.each(['body', 'query', 'deployment'] as const)('by %s', form => {
      test.each(
        (['reserved', 'active'] as const).flatMap(state => credentials.map(credential => [state, credential] as const)),
      )('a name that is %s, credential: %s', async (state, credential) => {
        const own = await createTenant(state, form === 'deployment')
        const isRight = credential === 'right' || (isFree && (credential === 'none' || form === 'deployment'))
        const expected = isRight ? 200 : 403
        expect(await release(form, credential, own, true)).toBe(expected)
        expect(await stateOf(own)).toBe(`${state}-state`)
        expect(await release(form, credential, own, false)).toBe(expected)
        // A lineage still holds the name of a deployment.
        expect(await stateOf(own)).toBe(expected === 200 && form !== 'deployment' ? 'free' : `${state}-state`)
      })
    })

    test.each(credentials)(
      'the token of a deployment that does not hold the name, credential: %s',
      async credential => {
        const own = await createTenant('active', false)
        expect(await release('deployment', credential, own, true)).toBe(isFree ? 200 : 403)
        expect(await release('deployment', credential, own, false)).toBe(isFree ? 200 : 403)
      },
    )
  })
})
