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
const metadata = { main_module: 'index.js', compatibility_date: '2026-05-01', bindings }

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
