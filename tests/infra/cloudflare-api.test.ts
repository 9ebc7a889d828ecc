import { expect, onTestFinished, test } from 'vitest'
import { Account } from './support/account.ts'
import { startCloudflareApi } from './support/cloudflare-api.ts'

const accountId = 'acc0'.repeat(8)
const token = 'token-of-the-test'.padEnd(40, '0')

/** The double of the API, and a client that sends what the provider sends. */
const createSite = async () => {
  const account = new Account()
  const api = await startCloudflareApi({ accounts: new Map([[accountId, account]]), token })
  onTestFinished(api.stop)
  const send = async (path: string, init: RequestInit = {}, id = accountId) => {
    const headers = { authorization: `Bearer ${token}`, ...(init.headers as Record<string, string>) }
    const response = await fetch(`${api.url}accounts/${id}/${path}`, { ...init, headers })
    const isJson = response.headers.get('content-type') === 'application/json'
    // biome-ignore lint/suspicious/noExplicitAny: the tests assert on bodies of every shape.
    const body: any = isJson ? await response.clone().json() : null
    return { status: response.status, response, body }
  }
  const sendJson = (method: string, path: string, body: unknown) =>
    send(path, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
  const upload = (name: string, metadata: object, type = 'application/javascript+module') => {
    const form = new FormData()
    form.set('index.js', new File(['// content\n'], 'index.js', { type }))
    form.set('metadata', new Blob([JSON.stringify(metadata)], { type: 'application/json' }))
    return send(`workers/scripts/${name}`, { method: 'PUT', body: form })
  }
  return { account, api, send, sendJson, upload }
}

const error = (status: number, code: number) => ({
  status,
  body: { success: false, errors: [{ code, message: expect.any(String) }], messages: [], result: null },
})
const ok = (result: unknown) => ({ status: 200, body: { success: true, errors: [], messages: [], result } })

const bindings = [{ name: 'LEASES', type: 'durable_object_namespace', class_name: 'LeaseObject' }]
const migrations = { new_tag: 'v1', new_sqlite_classes: ['LeaseObject'] }
const metadata = { main_module: 'index.js', compatibility_date: '2026-11-01', bindings }

test('only the token may access the account', async () => {
  const { send } = await createSite()
  expect(await send('workers/scripts')).toMatchObject(ok([]))
  expect(await send('workers/scripts', { headers: { authorization: '' } })).toMatchObject(error(400, 6003))
  expect(await send('workers/scripts', { headers: { authorization: 'Bearer x' } })).toMatchObject(error(403, 10_000))
  expect(await send('workers/scripts', {}, '0ace'.repeat(8))).toMatchObject(error(403, 10_000))
})

test('an unknown route, method or field is an error of the test', async () => {
  const { api, send, sendJson, upload } = await createSite()
  expect(await send('workers/subdomain')).toMatchObject(error(400, 7003))
  expect(await send('workers/scripts', { method: 'DELETE' })).toMatchObject(error(400, 7003))
  expect(await sendJson('POST', 'storage/kv/namespaces', { title: 'a', more: 1 })).toMatchObject(error(400, 7003))
  expect(await upload('a', { ...metadata, migrations, limits: {} })).toMatchObject(error(400, 7003))
  expect(await upload('a', { ...metadata, bindings: [{ name: 'A', type: 'd1' }] })).toMatchObject(error(400, 7003))
  expect(api.unknown.map(line => line.replace(/.*: /, ''))).toEqual([
    'route',
    'route',
    'field more',
    'field metadata.limits',
    'binding type d1',
  ])
})

test('a namespace has a unique title, and its id is found until it is deleted', async () => {
  const { sendJson, send } = await createSite()
  const path = 'storage/kv/namespaces'
  const created = await sendJson('POST', path, { title: 'leases' })
  const { id } = created.body.result
  expect(created).toMatchObject(
    ok({ id: expect.stringMatching(/^[0-9a-f]{32}$/), title: 'leases', supports_url_encoding: true }),
  )
  expect(await sendJson('POST', path, { title: 'leases' })).toMatchObject(error(400, 10_014))
  expect(await sendJson('PUT', `${path}/${id}`, { title: 'renamed' })).toMatchObject(ok({ id, title: 'renamed' }))
  expect(await send(`${path}/${id}`)).toMatchObject(ok({ id, title: 'renamed' }))
  expect(await send(`${path}/${id}`, { method: 'DELETE' })).toMatchObject(ok({}))
  expect(await send(`${path}/${id}`)).toMatchObject(error(404, 10_013))
})

test('a migration is accepted once, and an upload with a tag that is repeated or forgotten changes nothing', async () => {
  const { account, upload } = await createSite()
  expect(await upload('witness', metadata)).toMatchObject(error(400, 10_061))
  expect(await upload('witness', { ...metadata, migrations })).toMatchObject(ok({ migration_tag: 'v1' }))
  const repeated = await upload('witness', { ...metadata, migrations })
  expect(repeated).toMatchObject(error(412, 10_079))
  expect(repeated.body.errors[0].message).toBe(
    "Actor migration tag precondition failed, got tag '' when expected tag is 'v1'.",
  )
  const wrong = { old_tag: 'v0', new_tag: 'v2', new_sqlite_classes: ['Other'] }
  expect(await upload('witness', { ...metadata, migrations: wrong })).toMatchObject(error(412, 10_079))
  expect(account.script('witness')).toMatchObject({ uploads: 1, migrationTag: 'v1' })
  const next = { old_tag: 'v1', new_tag: 'v2', new_sqlite_classes: ['Other'] }
  expect(await upload('witness', { ...metadata, migrations: next })).toMatchObject(ok({ migration_tag: 'v2' }))
  expect(await upload('witness', metadata)).toMatchObject(ok({ migration_tag: 'v2' }))
})

test('an upload is a form with the metadata and the main module', async () => {
  const { account, send, upload } = await createSite()
  const put = (body: string, type: string) =>
    send('workers/scripts/witness', { method: 'PUT', body, headers: { 'content-type': type } })
  expect(await put('{}', 'application/json')).toMatchObject(error(400, 10_018))
  expect(await put('x', 'multipart/form-data; boundary=b')).toMatchObject(error(400, 10_018))
  expect(await upload('witness', { ...metadata, migrations, main_module: 'main.js' })).toMatchObject(error(400, 10_021))
  expect(await upload('witness', { ...metadata, migrations }, 'text/plain')).toMatchObject(error(400, 10_021))
  const text = { name: 'A', type: 'plain_text', text: 'a' }
  expect(await upload('witness', { ...metadata, bindings: [text, text] })).toMatchObject(error(400, 10_020))
  expect(await upload('witness', { ...metadata, bindings: [{ name: 'A', type: 'plain_text' }] })).toMatchObject(
    error(400, 10_021),
  )
  const kv = { name: 'KV', type: 'kv_namespace', namespace_id: 'missing' }
  expect(await upload('witness', { ...metadata, bindings: [kv] })).toMatchObject(error(400, 10_041))
  expect(account.scripts.size).toBe(0)
})

test('the settings have the defaults of the API and no secret, and the content is a form', async () => {
  const { send, upload } = await createSite()
  const secret = { name: 'TOKENS', type: 'secret_text', text: 'secret' }
  const observability = { enabled: true, logs: { enabled: true, invocation_logs: false } }
  await upload('witness', { ...metadata, bindings: [...bindings, secret], migrations, observability })
  const { body } = await send('workers/scripts/witness/settings')
  expect(body.result).toMatchObject({
    bindings: [
      { ...bindings[0], namespace_id: expect.stringMatching(/^[0-9a-f]{32}$/) },
      { name: 'TOKENS', type: 'secret_text' },
    ],
    compatibility_date: '2026-11-01',
    observability: {
      enabled: true,
      head_sampling_rate: 1,
      logs: { enabled: true, invocation_logs: false, head_sampling_rate: 1, persist: true },
      traces: { enabled: false, head_sampling_rate: 1, persist: true },
    },
  })
  expect(JSON.stringify(body)).not.toContain('"secret"')
  for (const path of ['workers/scripts/witness', 'workers/scripts/witness/content/v2']) {
    const { response } = await send(path)
    expect(await ((await response.formData()).get('index.js') as File).text()).toBe('// content\n')
  }
  expect(await send('workers/services/witness')).toMatchObject({
    body: { result: { default_environment: { script: { migration_tag: 'v1', handlers: ['fetch'] } } } },
  })
  for (const path of ['settings', 'content/v2', 'subdomain']) {
    expect(await send(`workers/scripts/other/${path}`)).toMatchObject(error(404, 10_007))
  }
  expect(await send('workers/services/other')).toMatchObject(error(404, 10_090))
})

test('addresses belong to a script, and are deleted with it', async () => {
  const { account, send, sendJson, upload } = await createSite()
  const subdomain = 'workers/scripts/witness/subdomain'
  const domain = { hostname: 'witness.example.com', service: 'witness', zone_id: '20e0'.repeat(8) }
  expect(await sendJson('POST', subdomain, { enabled: true })).toMatchObject(error(404, 10_007))
  expect(await sendJson('PUT', 'workers/domains', domain)).toMatchObject(error(404, 10_007))
  await upload('witness', { ...metadata, migrations })
  expect(await send(subdomain)).toMatchObject(ok({ enabled: false, previews_enabled: false }))
  expect(await sendJson('POST', subdomain, { enabled: 'yes' })).toMatchObject(error(400, 10_021))
  expect(await sendJson('POST', subdomain, { enabled: true })).toMatchObject(
    ok({ enabled: true, previews_enabled: false }),
  )
  expect(await send(subdomain, { method: 'DELETE' })).toMatchObject(ok({ enabled: false }))

  const { id } = (await sendJson('PUT', 'workers/domains', domain)).body.result
  expect(await sendJson('PUT', 'workers/domains', domain)).toMatchObject(
    ok({ ...domain, id, zone_name: 'example.com' }),
  )
  await upload('other', { ...metadata, migrations })
  expect(await sendJson('PUT', 'workers/domains', { ...domain, service: 'other' })).toMatchObject(error(409, 100_117))
  expect(await send('workers/scripts/witness', { method: 'DELETE' })).toMatchObject(ok({ id: 'witness' }))
  expect(await send(`workers/domains/${id}`)).toMatchObject(error(404, 100_114))
  expect([account.domains.size, account.subdomains.size, account.scripts.size]).toEqual([0, 0, 1])
})
