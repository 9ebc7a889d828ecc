import { randomBytes, randomUUID } from 'node:crypto'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import { until } from '@pool/test-kit/poll.ts'
import { type Api, type ApiResponse, sendRequest, startApi } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deriveToken } from '../../src/lib/token.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { poolPath } from '../support/service.ts'

/** Outputs an address immediately. */
const terraform = `#!/bin/sh
case $1 in
version) echo '{"terraform_version":"1.9.0"}' ;;
state) echo '{"version":4,"serial":1,"lineage":"tests","resources":[]}' ;;
apply) echo '{"@level":"info","@message":"Outputs: 1","type":"outputs","outputs":{"load_balancer_ip":{"sensitive":false,"value":"203.0.113.9"}}}' ;;
esac
`
const folder = mkdtempSync(join(tmpdir(), 'token-dump-'))
const binary = join(folder, 'terraform')
writeFileSync(binary, terraform)
chmodSync(binary, 0o755)

/** Every issued or invented token, and every key that a request had. */
const tokens = new Set<string>()
const keys: string[] = []
/** The responses without their own token, and what the log had. */
const answers: string[] = []
let database: TestDatabase
let api: Api

const createKey = (): string => {
  const key = `Key-${randomBytes(16).toString('base64url')}`
  keys.push(key)
  return key
}

/** Remembers the tokens of a 201; everything else of the response must not contain a token. */
const send = async (method: string, path: string, body?: unknown, key?: string): Promise<ApiResponse> => {
  const headers: Record<string, string> = key === undefined ? {} : { 'Idempotency-Key': key }
  const response = await sendRequest(api.url + path, method, body, headers)
  let { text } = response
  for (const field of ['reservationToken', 'deploymentToken', 'token']) {
    const token = response.status === 201 ? response.body[field] : undefined
    if (token === undefined) continue
    tokens.add(token)
    // That of records is also the password of its account.
    text = text.replaceAll(token, '')
  }
  answers.push(`${JSON.stringify([...response.headers])} ${text}`)
  return response
}
const reserve = (subdomain: string, key?: string) => send('POST', `${poolPath}/reserve`, { subdomain }, key)
const commit = (subdomain: string, reservationToken: string, key?: string) => {
  const body = { subdomain, reservationToken, sovereignFQDN: `${subdomain}.pool.test`, loadBalancerIP: '203.0.113.10' }
  return send('POST', `${poolPath}/commit`, body, key)
}
const deploy = (subdomain: string, key?: string) =>
  send('POST', '/api/v1/deployments', deploymentRequest(subdomain), key)

beforeAll(async () => {
  database = await createTestDatabase({ connections: 2 })
  api = await startApi(database.url, {
    PDM_LOG_LEVEL: 'trace',
    PDM_SWEEPER_INTERVAL: '1h',
    PDM_NAME_COOL_OFF: '1h',
    PDM_TERRAFORM_BINARY: binary,
    PDM_DEPLOYMENTS_DIR: join(folder, 'deployments'),
  })

  await reserve('reserved')
  const reservedKey = createKey()
  const first = await reserve('reserved-keyed', reservedKey)
  expect((await reserve('reserved-keyed', reservedKey)).body).toEqual(first.body)

  const activeKey = createKey()
  const active = await reserve('active', activeKey)
  expect((await commit('active', active.body.reservationToken, createKey())).status).toBe(200)
  const mint = { subdomain: 'active', reservationToken: active.body.reservationToken, scope: 'acme' }
  const mintKey = createKey()
  const minted = await send('POST', `${poolPath}/tokens`, mint, mintKey)
  expect((await send('POST', `${poolPath}/tokens`, mint, mintKey)).body).toEqual(minted.body)
  const present = { fqdn: '_acme-challenge.active.pool.test.', value: 'a'.repeat(43) }
  for (const [scheme, sent] of [
    ['Bearer', minted.body.token],
    ['Basic', Buffer.from(`x:${minted.body.token}`).toString('base64')],
  ]) {
    const url = `${api.url}/api/v1/records/httpreq/present`
    const { status, text } = await sendRequest(url, 'POST', present, { Authorization: `${scheme} ${sent}` })
    expect(status).toBe(200)
    answers.push(text)
  }
  await send('GET', `${poolPath}/tokens?sub=active`)
  // The reservation of this key has ended. Another client has the name, and the key gets no token.
  expect((await reserve('active', activeKey)).status).toBe(409)

  const released = await reserve('released', createKey())
  const { reservationToken } = released.body
  await commit('released', reservationToken, createKey())
  const release = { subdomain: 'released', reservationToken }
  expect((await send('DELETE', `${poolPath}/release`, release, createKey())).status).toBe(200)

  const invented = randomUUID()
  tokens.add(invented)
  for (const verb of ['renew', 'commit'] as const) {
    const body = { subdomain: 'reserved', sovereignFQDN: 'reserved.pool.test', loadBalancerIP: '203.0.113.10' }
    expect(
      (await send('POST', `${poolPath}/${verb}`, { ...body, reservationToken: invented }, createKey())).status,
    ).toBe(403)
  }

  const deploymentKey = createKey()
  const deployment = await deploy('deployed-keyed', deploymentKey)
  expect((await deploy('deployed-keyed', deploymentKey)).body).toEqual(deployment.body)
  const { body } = await deploy('deployed')
  for (const { id } of [deployment.body, body]) {
    await until('the deployment is ready', async () => {
      return (await send('GET', `/api/v1/deployments/${id}`)).body.status === 'ready'
    })
    await send('GET', `/api/v1/deployments/${id}/logs`)
  }
  for (const path of ['/api/v1/deployments', '/metrics', `${poolPath}/list`, `${poolPath}/history`]) {
    expect((await send('GET', path)).status).toBe(200)
  }
})

afterAll(async () => {
  await api.process.stop()
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})

/** Every value of every column of every table, and each string inside JSON. */
const readColumns = async (): Promise<{ readonly column: string; readonly value: string | Buffer }[]> => {
  const { sql } = database
  const columns = await sql<{ table: string; column: string }[]>`
    select table_name as table, column_name as column from information_schema.columns
    where table_schema = 'public' order by 1, 2`
  const found: { column: string; value: string | Buffer }[] = []
  const collect = (column: string, value: unknown): void => {
    if (value === null || value === undefined) return
    if (value instanceof Buffer) found.push({ column, value })
    else if (value instanceof Date) found.push({ column, value: value.toISOString() })
    else if (typeof value === 'object') {
      found.push({ column, value: JSON.stringify(value) })
      for (const [name, inner] of Object.entries(value)) collect(`${column}.${name}`, inner)
    } else found.push({ column, value: String(value) })
  }
  for (const { table, column } of columns) {
    const rows = await sql`select ${sql(column)} as value from ${sql(table)}`
    for (const { value } of rows) collect(`${table}.${column}`, value)
  }
  return found
}

/** How a reader of a dump could write a value as text. */
const toTexts = (value: string | Buffer): string[] => {
  if (typeof value === 'string') return [value]
  return [value.toString('latin1'), value.toString('hex'), value.toString('base64'), value.toString('base64url')]
}

/** How a secret could be written in a table or in a line of text. */
const toForms = (secret: string): string[] => {
  const bytes = Buffer.from(secret)
  const compact = secret.replaceAll('-', '')
  const forms = [secret, compact, bytes.toString('hex'), bytes.toString('base64'), bytes.toString('base64url')]
  const uuid = /^[0-9a-f]{32}$/.test(compact) ? Buffer.from(compact, 'hex') : null
  return uuid ? [...forms, uuid.toString('base64'), uuid.toString('latin1')] : forms
}

/** Forms without the padding that depends on what follows. */
const findSecrets = (texts: readonly string[]): string[] => {
  const needles = [...tokens, ...keys].flatMap(secret =>
    toForms(secret).map(form => [secret, form.replace(/=+$/, '').toLowerCase()] as const),
  )
  const all = texts.join('\n').toLowerCase()
  return [...new Set(needles.filter(([, form]) => all.includes(form)).map(([secret]) => secret))]
}

describe('while tokens are live', () => {
  test('the tables have a reserved, an active and a released name, deployments, and the salts of tokens', async () => {
    const { sql } = database
    const [counts] = await sql`
      select (select count(*) from pool_allocations where state = 'reserved')::int as reserved,
        (select count(*) from pool_allocations where state = 'active')::int as active,
        (select count(*) from pool_allocations where state = 'released')::int as released,
        (select count(*) from deployments)::int as deployments,
        (select count(*) from idempotency_keys)::int as keys`
    expect(counts).toMatchObject({ reserved: 2, active: 3, released: 1, deployments: 2, keys: 9 })
    expect(tokens.size).toBe(8)
  })

  test('no column of any table contains a token or an Idempotency-Key in any form', async () => {
    const columns = await readColumns()
    expect(columns.length).toBeGreaterThan(200)
    expect(columns.filter(({ value }) => findSecrets(toTexts(value)).length > 0).map(({ column }) => column)).toEqual(
      [],
    )
  })

  test('no value of any column derives a token from its salt, as the key', async () => {
    const rows = await database.sql<{ salt: string }[]>`select encode(salt, 'hex') as salt from idempotency_keys`
    const derivesToken = (key: string) => rows.some(({ salt }) => tokens.has(deriveToken(key, salt)))
    const candidates = (await readColumns()).flatMap(({ column, value }) =>
      toTexts(value).map(text => [column, text] as const),
    )
    expect(candidates.length).toBeGreaterThan(300)
    expect(candidates.filter(([, text]) => derivesToken(text)).map(([column]) => column)).toEqual([])
    // The keys of the requests that got a token derive it.
    const deriving = [...keys].flatMap(key => [key, `deployment ${key}`]).filter(derivesToken)
    expect(deriving).toHaveLength(4)
  })

  test('no response contains a token, apart from the 201 that issued it and its replay', () => {
    expect(answers.length).toBeGreaterThan(20)
    expect(findSecrets(answers)).toEqual([])
  })

  test('an internal error contains neither, in its response and in the log', async () => {
    // The detail of the error has the row.
    await database.sql`alter table idempotency_keys add constraint broken check (false) not valid`
    try {
      const answers = [await reserve('failing', createKey()), await deploy('failing', createKey())]
      for (const { status, text } of answers) {
        expect(status).toBe(500)
        expect(findSecrets([text])).toEqual([])
      }
      const [reserved] = tokens
      expect((await commit('reserved', reserved ?? '', createKey())).status).toBe(500)
    } finally {
      await database.sql`alter table idempotency_keys drop constraint broken`
    }
    await expect.poll(() => api.lines.filter(line => line.includes('23514')).length).toBeGreaterThan(2)
  })

  test('no line of the log contains either, at the most verbose level', () => {
    expect(api.lines.length).toBeGreaterThan(30)
    expect(api.lines.filter(line => findSecrets([line]).length > 0)).toEqual([])
  })

  test('a salt is deleted with its key', async () => {
    await database.advance(25 * 3_600_000)
    await api.process.stop()
    api = await startApi(database.url, { PDM_SWEEPER_INTERVAL: '10ms' })
    await until('the sweeper has deleted the keys', async () => {
      const [row] = await database.sql`select count(*)::int as keys from idempotency_keys`
      return row?.keys === 0
    })
  })
})
