import type { Sql } from '@pool/runtime/database/client'
import { type DedicatedPostgres, startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import {
  runUntilExit,
  sendRequest,
  startApi,
  startWitness,
  toApiEntry,
  toWitnessEntry,
} from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createRoleDatabase } from '../support/doctor.ts'

// Each setting that a role can have of its own gets another value: every response stays the same, or the start and the
// doctor name the setting.

interface Setting {
  readonly name: string
  readonly values: readonly string[]
}

/** Other values of settings that are texts. Those without one have no other that this server accepts. */
const TEXTS: Readonly<Record<string, readonly string[]>> = {
  DateStyle: ['German', 'SQL, DMY'],
  TimeZone: ['Asia/Kathmandu', 'America/St_Johns'],
  client_encoding: ['LATIN1', 'SQL_ASCII'],
  createrole_self_grant: ['set'],
  default_text_search_config: ['pg_catalog.german'],
  lc_monetary: ['C'],
  lc_numeric: ['C'],
  lc_time: ['C'],
  search_path: ['public, pg_catalog', 'pg_catalog, public'],
  temp_tablespaces: ['pg_default'],
  timezone_abbreviations: ['India'],
  application_name: ['example'],
}

/**
 * The second values let Postgres use parallel workers. One of them has the role's `transaction_timeout` until it has the settings
 * of its leader, which can take long on a busy machine.
 */
const MINUTE_MS = '60000'

const OPERATOR_TOKEN = 'token-of-an-operator'
const WITNESS_TOKEN = 'token-of-the-witness'

let postgres: DedicatedPostgres
let admin: Sql
let apiUrl: string
let witnessUrl: string
let settings: readonly Setting[]

beforeAll(async () => {
  postgres = await startDedicatedPostgres()
  admin = postgres.connect()
  apiUrl = await createRoleDatabase(postgres.url, 'api')
  witnessUrl = await createRoleDatabase(postgres.url, 'witness', { migrates: false })
  const rows = await admin<{ name: string; type: string; current: string; others: string[] }[]>`
    select name, vartype as type, reset_val as current,
      case when vartype = 'enum' then to_json(enumvals) else json_build_array(min_val, max_val) end as others
    from pg_settings
    where context = 'user' and name not in (
      -- Of a transaction only; and how an operator stops all writes, which the start and the doctor name.
      'transaction_deferrable', 'transaction_isolation', 'transaction_read_only', 'default_transaction_read_only')
    order by name`
  settings = rows.map(({ name, type, current, others }) => {
    const values =
      type === 'bool'
        ? [current === 'on' ? 'off' : 'on']
        : type === 'string'
          ? (TEXTS[name] ?? [])
          : /_(?:timeout|interval)$/.test(name)
            ? ['1', name === 'transaction_timeout' ? MINUTE_MS : '50']
            : others
    return { name, values: values.filter(value => value !== current) }
  })
})
afterAll(() => postgres?.remove())

const setForRoles = async (values: Readonly<Record<string, string>>): Promise<void> => {
  for (const role of ['api', 'witness']) {
    await admin.unsafe(`alter role ${role} reset all`)
    for (const [name, value] of Object.entries(values)) {
      const text = name === 'search_path' ? value : `'${value}'`
      await admin.unsafe(`alter role ${role} set ${name} = ${text}`)
    }
  }
}

/** Without what differs from one run to the next. A time must be one of today. */
const normalize = (text: string): string =>
  text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, time =>
      Math.abs(Date.parse(time) - Date.now()) < 86_400_000 ? '<now>' : `<other time: ${time}>`,
    )
    .replace(/[\da-f]{8}-[\da-f-]{27}/g, '<id>')
    .replace(
      /"(?:requestId|serial|version|generation|seconds|\w*Ms|numEvents|id|at|epoch|pid|samples?)":(?:"[^"]*"|\d+)/g,
      '',
    )

let round = 0

/** The main calls of both services, with their responses. A service that does not start has its lines instead. */
const callAll = async (): Promise<Record<string, string>> => {
  round += 1
  const name = `name-${round}`
  const results: Record<string, string> = {}
  const hide = (text: string): string => normalize(text.replaceAll(name, '<name>'))
  const env = {
    PDM_OPERATOR_TOKENS: OPERATOR_TOKEN,
    PDM_DATABASE_POOL_SIZE: '5',
    PDM_DNS_COMMIT_WAIT: '20s',
    PDM_TEST_SETTINGS: JSON.stringify({ consoleFolder: '/nowhere' }),
  }
  const api = await startApi(apiUrl, env).catch(() => null)
  if (api === null) {
    const { lines } = await runUntilExit({ entry: toApiEntry(), env: { PORT: '0', PDM_DATABASE_URL: apiUrl } })
    return { start: lines.join('\n') }
  }
  const root = '/api/v1/pool/pool.test'
  let token = ''
  const call = async (
    title: string,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ) => {
    const isOperator = title.startsWith('operator')
    const response = await sendRequest((isOperator ? api.operatorUrl : api.url) + path, method, body, {
      ...headers,
      ...(isOperator ? { Authorization: `Bearer ${OPERATOR_TOKEN}` } : {}),
    })
    token = response.body?.reservationToken ?? token
    results[title] = path.endsWith('overview') ? `${response.status}` : `${response.status} ${hide(response.text)}`
    return response
  }
  const key = { 'Idempotency-Key': `key-of-round-${round}-of-this-test` }
  const target = () => ({
    subdomain: name,
    reservationToken: token,
    sovereignFQDN: `${name}.pool.test`,
    loadBalancerIP: '192.0.2.1',
  })
  await call('check', 'GET', `${root}/check?sub=${name}`)
  await call('reserve', 'POST', `${root}/reserve`, { subdomain: name, createdBy: 'grüße' })
  await call('renew', 'POST', `${root}/renew`, target())
  await call('commit', 'POST', `${root}/commit`, target())
  await call('update', 'POST', `${root}/update`, { ...target(), loadBalancerIP: '192.0.2.2' })
  await call('list', 'GET', `${root}/list`)
  await call('pages', 'GET', `${root}/list?limit=1`)
  await call('operator history', 'GET', `${root}/history?sub=${name}`)
  for (const path of ['zones', 'overview', 'names?limit=5', 'deployments'])
    await call(`operator ${path}`, 'GET', `/api/v1/${path}`)
  await call('operator converge', 'POST', `${root}/converge`)
  await call('operator republish', 'POST', `${root}/republish`)
  await call('release', 'DELETE', `${root}/release`, { subdomain: name })
  await call('keyed reserve', 'POST', `${root}/reserve`, { subdomain: name }, key)
  await call('replay', 'POST', `${root}/reserve`, { subdomain: name }, key)
  await call('release again', 'DELETE', `${root}/release`, { subdomain: name })
  const burst = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      api.call('POST', `${root}/reserve`, { subdomain: `${name}-${index % 30}` }),
    ),
  )
  results.burst = JSON.stringify(burst.map(({ status }) => status).sort())
  await Promise.all(
    Array.from({ length: 30 }, (_, index) => api.call('DELETE', `${root}/release`, { subdomain: `${name}-${index}` })),
  )
  await call('ready', 'GET', '/readyz')
  await api.process.stop()

  const witness = await startWitness(witnessUrl, { BEARER_TOKENS_CSV: WITNESS_TOKEN }).catch(() => null)
  if (witness === null) {
    const { lines } = await runUntilExit({
      entry: toWitnessEntry(),
      env: { PORT: '0', WITNESS_DATABASE_URL: witnessUrl, BEARER_TOKENS_CSV: WITNESS_TOKEN },
    })
    return { ...results, start: lines.join('\n') }
  }
  const lease = async (title: string, method: string, path: string, generation: string, body?: unknown) => {
    const headers = {
      Authorization: `Bearer ${WITNESS_TOKEN}`,
      ...(generation === '' ? {} : { 'If-Match': generation }),
    }
    const response = await sendRequest(`${witness.url}${path}`, method, body, headers)
    results[title] = `${response.status} ${hide(response.text)}`
    return response.headers.get('etag') ?? ''
  }
  const acquired = await lease('acquire', 'PUT', `/lease/${name}`, '0', { holder: 'a', value: 'grüße' })
  const renewed = await lease('renew lease', 'PUT', `/lease/${name}`, acquired, { holder: 'a', op: 'renew' })
  await lease('conflict', 'PUT', `/lease/${name}`, '0', { holder: 'b' }).catch(() => {})
  await lease('renewals', 'POST', '/leases/renew', '', {
    holder: 'a',
    leases: [{ slot: name, generation: Number(renewed.replaceAll('"', '')) }],
  })
  await lease('read', 'GET', `/lease/${name}`, '')
  await lease('leases', 'GET', `/leases?prefix=${name}`, '')
  results.contenders = JSON.stringify(
    (
      await Promise.all(
        Array.from({ length: 60 }, (_, index) =>
          sendRequest(
            `${witness.url}/lease/${name}-${index % 20}`,
            'PUT',
            { holder: `h${index}` },
            { Authorization: `Bearer ${WITNESS_TOKEN}`, 'If-Match': '0' },
          ),
        ),
      )
    )
      .map(({ status }) => status)
      .sort(),
  )
  await witness.process.stop()
  return results
}

const findDifferences = (expected: Record<string, string>, actual: Record<string, string>) =>
  Object.keys({ ...expected, ...actual }).filter(title => expected[title] !== actual[title])

test('every setting has another value: each response is that of the defaults', async () => {
  await setForRoles({})
  await callAll()
  const expected = await callAll()
  expect(expected).toMatchObject({
    commit: expect.stringMatching(/^200 .*published/),
    ready: expect.stringMatching(/^200/),
  })
  expect(settings.length).toBeGreaterThan(100)
  for (const index of [0, 1]) {
    const values = Object.fromEntries(
      settings.flatMap(({ name, values }) => {
        const value = values[index] ?? values[0]
        return value === undefined ? [] : [[name, value]]
      }),
    )
    await setForRoles(values)
    const actual = await callAll()
    expect(findDifferences(expected, actual).map(title => [title, actual[title]])).toEqual([])
  }
})
