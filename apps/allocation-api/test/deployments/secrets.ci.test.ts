import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingGateway, startGateway } from '@pool/test-kit/ceph/gateway.ts'
import { deploymentRequest, storageSection } from '@pool/test-kit/deployment-request.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { type Api, type ApiResponse, sendRequest, startApi } from '@pool/test-kit/services.ts'
import { createS3Client } from '@pool/test-kit/terraform/gateway-site.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toEncodedForms } from '../../src/deployments/terraform/domain/output.ts'
import {
  makeIdentities,
  overTls,
  startScriptedServer,
  toHttpResponse,
  withStorageNames,
} from '../support/credentials.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { copyDeploymentModule, type DeploymentModule } from '../support/deployment-module.ts'
import { followStream } from '../support/events.ts'
import { isTerraformMissing, readFiles } from '../terraform/support/terraform.ts'

/** Characters that other programs quote, escape and encode; no two secrets have the same beginning. */
const marked = (what: string) => `${what}${randomBytes(9).toString('hex')}/+"'\\$<&>%{x}=end`
const secrets = {
  accessKey: `AK${randomBytes(9).toString('hex')}`,
  secretKey: marked('sk'),
  wrongSecret: marked('ws'),
  suspendedKey: `SU${randomBytes(9).toString('hex')}`,
  suspendedSecret: marked('ss'),
  unknownKey: `UN${randomBytes(9).toString('hex')}`,
  shortKey: `S${randomBytes(4).toString('hex')}`,
  token: marked('tk'),
  refusedToken: marked('rt'),
}
const needles = Object.entries(secrets).flatMap(([name, secret]) =>
  toEncodedForms(secret).map(form => [name, form] as const),
)
const leaksIn = (text: string): string[] => [
  ...new Set(needles.flatMap(([name, form]) => (text.includes(form) ? [name] : []))),
]

const operator = { Authorization: 'Bearer operator-token-of-tests' }

/** The arguments of every process of this machine. */
const allArguments = (): string =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'latin1')
      } catch {
        return ''
      }
    })
    .join('\n')

test('the search finds a secret in any encoding', () => {
  const { secretKey } = secrets
  const base64 = Buffer.from(`user:${secretKey}:more`).toString('base64')
  for (const text of [secretKey, JSON.stringify(secretKey), encodeURIComponent(secretKey), base64]) {
    expect(leaksIn(`before ${text} after`)).toEqual(['secretKey'])
  }
})

describe.skipIf(shouldSkip(missingGateway) || isTerraformMissing)('a complete run with marked secrets', () => {
  let database: TestDatabase
  let module: DeploymentModule
  let api: Api
  const folder = mkdtempSync(join(tmpdir(), 'deployments-'))
  const closers: (() => unknown)[] = []
  const answers: string[] = []
  const logs: string[] = []
  const args: string[] = []

  const call = async (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
    base = api.url,
  ): Promise<ApiResponse> => {
    const answer = await sendRequest(base + path, method, body, headers)
    answers.push(`${method} ${path} ${answer.status} ${JSON.stringify([...answer.headers])} ${answer.text}`)
    return answer
  }
  const toKeys = (accessKey: string, secretKey: string) => ({ region: 'fsn1', accessKey, secretKey })
  const toDeploymentRequest = (subdomain: string, change: object = {}) =>
    deploymentRequest(subdomain, { ...storageSection(secrets), adoptBucket: true, ...change })
  const created = async (subdomain: string): Promise<string> => {
    const answer = await call('POST', '/api/v1/deployments', toDeploymentRequest(subdomain), {
      'Idempotency-Key': subdomain,
    })
    if (answer.status !== 201) throw new Error(`${answer.status} ${answer.text}`)
    return answer.body.id
  }
  const finished = (id: string) =>
    until(`${id} is finished`, async () => {
      const { body } = await sendRequest(`${api.url}/api/v1/deployments/${id}`, 'GET')
      return body.finishedAt !== null && body.status
    })
  const follow = async (id: string) => {
    const { ended } = await followStream(`${api.url}/api/v1/deployments/${id}/logs`)
    for (const { data } of await ended) answers.push(data)
  }
  const start = async (env: Record<string, string>) => {
    api = await startApi(database.url, env)
  }

  beforeAll(async () => {
    const gateway = await startGateway({ names: ['*.storage.test'] })
    await gateway.addUser(toKeys(secrets.accessKey, secrets.secretKey))
    const { accessKey: user, secretKey: password } = secrets
    const server = `fsn1.storage.test:${gateway.port}`
    const s3 = createS3Client({ server, region: 'fsn1', user, password, tls: true }, gateway)
    await s3.signed('/catalyst-good-pool-test', { method: 'PUT' })
    await (await gateway.addUser(toKeys(secrets.suspendedKey, secrets.suspendedSecret))).suspend()
    const identities = await makeIdentities()
    const cloud = await startScriptedServer()
    cloud.respondWith(
      overTls(identities.good, (socket, head) => {
        // The provider echoes the request, as some do.
        socket.end(toHttpResponse(head.includes(secrets.refusedToken) ? 401 : 200, head))
      }),
    )
    database = await createTestDatabase({ connections: 2 })
    module = copyDeploymentModule()
    closers.push(
      () => gateway.stop(),
      () => identities.remove(),
      () => cloud.close(),
      () => module.remove(),
    )
    const env = {
      OBJECT_STORAGE_DOMAIN: `storage.test:${gateway.port}`,
      OBJECT_STORAGE_CA_FILE: gateway.caFile,
      PROVIDER_TOKEN_URLS: `hetzner=https://fsn1.storage.test:${cloud.port}/v1/locations`,
      NODE_EXTRA_CA_CERTS: identities.caFile,
      NODE_OPTIONS: withStorageNames,
      PDM_LOG_LEVEL: 'trace',
      PDM_OPERATOR_TOKENS: 'operator-token-of-tests',
      PDM_TEST_SETTINGS: JSON.stringify({ validationAttempts: 100 }),
      ...module.env,
      PDM_DEPLOYMENTS_DIR: folder,
      TF_LOG: 'trace',
    }
    await start(env)

    const validate = '/api/v1/credentials/object-storage/validate'
    const bodies = [
      toKeys(secrets.accessKey, secrets.secretKey),
      toKeys(secrets.accessKey, secrets.wrongSecret),
      toKeys(secrets.unknownKey, secrets.secretKey),
      toKeys(secrets.suspendedKey, secrets.suspendedSecret),
      toKeys(secrets.shortKey, secrets.secretKey),
      toKeys(secrets.accessKey, secrets.shortKey),
      { ...toKeys(secrets.accessKey, secrets.secretKey), region: secrets.token },
      { ...toKeys(secrets.accessKey, secrets.secretKey), provider: secrets.token },
      `{"accessKey": "${secrets.accessKey}", "secretKey": ${JSON.stringify(secrets.secretKey)}, oops}`,
    ]
    const statuses = []
    for (const body of bodies) statuses.push((await call('POST', validate, body)).status)
    expect(statuses).toEqual([200, 200, 200, 200, 400, 400, 400, 400, 400])
    for (const token of [secrets.token, secrets.refusedToken, `${secrets.token} `, `${secrets.token} x`]) {
      await call('POST', '/api/v1/credentials/validate', { provider: 'hetzner', token })
    }

    for (const change of [
      { objectStorageSecretKey: secrets.wrongSecret },
      { objectStorageAccessKey: secrets.unknownKey },
      { objectStorageAccessKey: secrets.shortKey, region: '' },
      { objectStorageRegion: secrets.token },
      { orgName: '' },
    ]) {
      expect((await call('POST', '/api/v1/deployments', toDeploymentRequest('rejected', change))).status).toBe(400)
    }
    for (const what of ['good', 'fails', 'stopped', 'killed']) module.set('leak', `${what}.pool.test`)
    module.set('fail', 'fails.pool.test')
    for (const what of ['stopped', 'killed']) module.set('hold', `${what}.pool.test`)
    const good = await created('good')
    await follow(good)
    expect((await call('POST', '/api/v1/deployments', toDeploymentRequest('good'))).status).toBe(409)
    expect(
      (await call('POST', '/api/v1/deployments', toDeploymentRequest('good'), { 'Idempotency-Key': 'good' })).status,
    ).toBe(201)
    const fails = await created('fails')
    await follow(fails)
    const [stopped, killed] = [await created('stopped'), await created('killed')]
    await until('both applies are in progress', async () => {
      const rows = await database.sql`
        select distinct deployment_id from deployment_log_lines
        where deployment_id in ${database.sql([stopped, killed])} and message like '%holding%'`
      return rows.length === 2
    })
    args.push(allArguments())
    for (const { text, path } of readFiles(folder)) answers.push(`${path} while it is made: ${text}`)
    const cancelled = await call('DELETE', `/api/v1/deployments/${stopped}`, undefined, operator, api.operatorUrl ?? '')
    expect(cancelled.status).toBe(202)
    await follow(stopped)
    logs.push(...api.lines)
    await api.process.kill()
    await database.advance(30_000)
    await start(env)
    await follow(killed)
    const ends = await Promise.all([good, fails, stopped, killed].map(finished))
    expect(ends).toEqual(['ready', 'failed', 'failed', 'failed'])
    for (const id of [good, fails, stopped, killed]) await call('GET', `/api/v1/deployments/${id}`)
    for (const path of ['/api/v1/deployments', '/metrics', '/openapi.json', '/healthz']) await call('GET', path)
    for (const path of ['list', 'history']) {
      await call('GET', `/api/v1/pool/pool.test/${path}`, undefined, operator, api.operatorUrl ?? '')
    }
  })
  afterAll(async () => {
    await api.process.stop()
    for (const close of closers) await close()
    await database.drop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('a secret was printed during a deployment, and is masked in its log', () => {
    const masked = answers.filter(text => text.includes('logging in with') && !text.includes('$SECRET'))
    expect(masked.length).toBeGreaterThanOrEqual(3)
    for (const text of masked) expect(text).toContain('logging in with <redacted>')
  })

  test('no response, event, metric or file has a secret', () => {
    expect(answers.length).toBeGreaterThan(50)
    expect(answers.filter(text => leaksIn(text).length > 0)).toEqual([])
  })

  test('no line of a service log has a secret', async () => {
    logs.push(...api.lines)
    expect(logs.some(line => line.includes('"msg":"deployment run ended"'))).toBe(true)
    expect(logs.filter(line => leaksIn(line).length > 0)).toEqual([])
  })

  test('no process has a secret in its arguments', () => {
    expect(args.join('')).toContain('apply')
    expect(args.flatMap(leaksIn)).toEqual([])
  })

  test('no row of any table has a secret', async () => {
    const tables = await database.sql<{ name: string }[]>`
      select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`
    const rows = []
    for (const { name } of tables) {
      rows.push(...(await database.sql.unsafe<{ row: string }[]>(`select to_jsonb(t)::text as row from ${name} t`)))
    }
    expect(rows.some(({ row }) => row.includes('<redacted>'))).toBe(true)
    expect(rows.filter(({ row }) => leaksIn(row).length > 0)).toEqual([])
  })

  test('no state has a secret, and no working directory is left', () => {
    const files = readFiles(folder)
    expect(files.map(({ path }) => path).join()).toContain('.tfstate')
    expect(files.filter(({ text }) => leaksIn(text).length > 0)).toEqual([])
    expect(readdirSync(join(folder, 'work'))).toEqual([])
  })

  test('a deployment token is in the response to the creation and in its replay only', () => {
    const tokens = answers.flatMap(text => /"deploymentToken":"([^"]+)"/.exec(text)?.[1] ?? [])
    expect([tokens.length, new Set(tokens).size]).toEqual([5, 4])
    const all = [...answers, ...logs, ...readFiles(folder).map(({ text }) => text)].join('\n')
    const count = (token: string) => all.split(token).length - 1
    expect([...new Set(tokens)].map(count).sort()).toEqual([1, 1, 1, 2])
  })
})
