import { expect, test } from 'vitest'
import { createContractCall, startTestService } from '../support/service.ts'

const { api, call, database } = await startTestService({ PDM_OPERATOR_TOKENS: 'third-token-of-tests' })
const send = createContractCall(api.operatorUrl ?? '')
const operator = (method: string, path: string) =>
  send(method, path, undefined, { Authorization: 'Bearer third-token-of-tests' })

const [lineage, deployment] = ['0a000000-0000-4000-8000-000000000001', '0a000000-0000-4000-8000-000000000002']

await database.sql`
  insert into lineages (id, sovereign_fqdn, infrastructure_changed_at, created_at)
  values (${lineage}, 'acme.example', now(), now())`
await database.sql`
  insert into bucket_claims (bucket, lineage_id, sovereign_fqdn, is_permanent, claimed_at)
  select bucket, ${lineage}, 'acme.example', true, now() from unnest(string_to_array('b-one,b-three,b-two', ',')) bucket`
await database.sql`
  insert into deployment_history
    (event, deployment_id, lineage_id, sovereign_fqdn, org_name, actor, address, request_id, detail)
  values ('created', ${deployment}, ${lineage}, 'acme.example', 'Acme', 'in-cluster', '10.0.0.9', 'r-1', null),
    ('failed', ${deployment}, ${lineage}, 'acme.example', 'Acme', 'deployment', null, null, 'no')`

await database.sql`
  insert into deployments
    (id, lineage_id, status, request, sovereign_fqdn, token_hash, error, module, started_at, finished_at, run_expires_at)
  values (${deployment}, ${lineage}, 'failed', ${database.sql.json({
    orgName: 'Acme',
    orgEmail: 'ops@acme.example',
    sovereignFQDN: 'acme.example',
    providers: ['local', 'aws'],
    region: 'fsn1',
    storage: null,
    objectStorageAccessKey: '',
    objectStorageSecretKey: '',
  })}, 'acme.example', ${Buffer.alloc(32)}, 'no', 'cluster@sha256:0123456789ab', now(), now(), null)`

test('a deployment shows whose it is, and its mail address on the operator listener only', async () => {
  const common = { orgName: 'Acme', providers: ['local', 'aws'], module: 'cluster@sha256:0123456789ab' }
  const path = `/api/v1/deployments/${deployment}`
  expect((await call('GET', path)).body).toMatchObject(common)
  for (const from of ['/api/v1/deployments', path, `${path}/logs`]) {
    const { status, text } = await call('GET', from)
    expect(status).toBe(200)
    expect(text).toContain('"orgName":"Acme"')
    expect(text).not.toContain('ops@acme.example')
  }
  const shown = { ...common, orgEmail: 'ops@acme.example' }
  expect((await operator('GET', path)).body).toMatchObject(shown)
  expect((await operator('GET', '/api/v1/deployments')).body.deployments).toMatchObject([shown])
  expect((await operator('GET', `${path}/logs`)).text).toContain('"orgEmail":"ops@acme.example"')
})

test.each([
  ['CME.ex', 1],
  ['acme', 1],
  ['', 1],
  ['example acme', 1],
  ['%25', 0],
  ['fsn1', 0],
])('the deployments whose FQDN or organisation contains %j: %i', async (text, count) => {
  const { body } = await operator('GET', `/api/v1/deployments?search=${text}`)
  expect(body.deployments).toHaveLength(count)
})

test('the claims, page by page', async () => {
  const first = await operator('GET', '/api/v1/buckets?limit=2')
  expect(first.body).toMatchObject({
    buckets: [
      { bucket: 'b-one', sovereignFQDN: 'acme.example', lineageId: lineage, isPermanent: true },
      { bucket: 'b-three' },
    ],
  })
  const rest = await operator('GET', `/api/v1/buckets?limit=2&cursor=${first.body.nextCursor}`)
  expect(rest.body.buckets).toMatchObject([{ bucket: 'b-two' }])
  expect(rest.body).not.toHaveProperty('nextCursor')
})

test.each([
  ['/api/v1/deployments/history?deployment=acme', 'invalid-format'],
  ['/api/v1/deployments/history?fqdn=a%00b', 'invalid-format'],
  ['/api/v1/deployments?search=a%00b', 'invalid-format'],
])('%s is 422 %s', async (path, code) => {
  expect(await operator('GET', path)).toMatchObject({ status: 422, body: { error: code } })
})

test('DELETE of a claim whose name has a null character is 404', async () => {
  expect((await operator('DELETE', '/api/v1/buckets/a%00b')).status).toBe(404)
})

test('DELETE of a claim is 204, then 404; the history has it, by deployment and by FQDN', async () => {
  expect((await operator('DELETE', '/api/v1/buckets/b-two')).status).toBe(204)
  expect(await operator('DELETE', '/api/v1/buckets/b-two')).toMatchObject({
    status: 404,
    body: { error: 'not-found', detail: 'No claim of this bucket.' },
  })
  const path = '/api/v1/deployments/history'
  const entries = [
    { event: 'bucket-claim-lifted', actor: 'operator', address: '127.0.0.1', detail: 'b-two', orgName: 'Acme' },
    { event: 'failed', actor: 'deployment', detail: 'no' },
    { event: 'created', actor: 'in-cluster', address: '10.0.0.9', requestId: 'r-1' },
  ]
  expect((await operator('GET', `${path}?deployment=${deployment.toUpperCase()}`)).body.entries).toMatchObject(entries)
  expect((await operator('GET', `${path}?deployment=${lineage}`)).body).toEqual({ entries: [] })
  const first = await operator('GET', `${path}?fqdn=ACME.example.&limit=1`)
  expect(first.body.entries).toMatchObject(entries.slice(0, 1))
  const rest = await operator('GET', `${path}?fqdn=acme.example&cursor=${first.body.nextCursor}`)
  expect(rest.body.entries).toMatchObject(entries.slice(1))
  expect(rest.body).not.toHaveProperty('nextCursor')
})

test('the log shows from where each call to a deployment came and which deployment it was', async () => {
  const stranger = { 'X-Deployment-Token': '11111111-2222-4333-8444-555555555555', 'X-Request-Id': 'a-stranger' }
  await call('POST', `/api/v1/deployments/${deployment.toUpperCase()}/destroy`, undefined, stranger)
  await call('DELETE', '/api/v1/deployments/not-an-id', undefined, { 'X-Request-Id': 'a-typo' })
  const logged = (id: string) => api.lines.filter(line => line.includes(id)).map(line => JSON.parse(line))
  const address = '127.0.0.1'
  await expect.poll(() => logged('a-stranger')).toMatchObject([{ address, deployment, outcome: 'token-mismatch' }])
  await expect.poll(() => logged('a-typo')).toMatchObject([{ address, outcome: 'not-found' }])
  const lines = [...logged('a-stranger'), ...logged('a-typo')].map(line => JSON.stringify(line)).join()
  expect(lines).not.toContain('not-an-id')
  expect(lines).not.toContain(stranger['X-Deployment-Token'])
})
