import { afterAll, beforeAll, expect, test } from 'vitest'
import { createCliFolder, runPoolctl } from './support/cli.ts'

const home = createCliFolder()
afterAll(() => home[Symbol.dispose]())

const id = '4f1c2a9e-0b7d-4c58-9a51-2f7d5f3b9c10'
const deployment = {
  ...{ id, startedAt: '2026-01-01T00:00:00.000Z', finishedAt: null, orgName: 'Acme', providers: ['local'] },
  ...{
    sovereignFQDN: 'acme.pool.test',
    region: 'local',
    objectStorageRegion: '',
    objectStorageBucket: '',
    numEvents: 0,
  },
}
const planHash = 'ab'.repeat(32)

/** Sends one command; returns what it sends to change something, and what it prints. */
const send = async (line: string, status: string, answer: object) => {
  const sent: { method: string; path: string; body: unknown; hasKey: boolean }[] = []
  const fakeFetch: typeof fetch = async (input, init) => {
    const method = init?.method ?? 'GET'
    if (method === 'GET') return Response.json({ ...deployment, status })
    const { pathname, search } = new URL(String(input))
    const body = init?.body ? JSON.parse(await new Response(init.body).text()) : undefined
    sent.push({ method, path: pathname + search, body, hasKey: new Headers(init?.headers).has('Idempotency-Key') })
    return Response.json(answer, { status: pathname.endsWith('/plan') ? 200 : 202 })
  }
  const result = await runPoolctl(line.split(' '), { env: home.env, fetch: fakeFetch })
  expect(result, result.stderr).toMatchObject({ exitCode: 0 })
  return { sent, ...result }
}

beforeAll(async () => {
  await runPoolctl(['contexts', 'set', 'test', '--api', 'http://127.0.0.1:1'], { env: home.env })
})

const started = { id, status: 'provisioning', streamURL: `/api/v1/deployments/${id}/logs` }
const destroying = { ...started, status: 'destroying' }
const cancelled = { ...deployment, status: 'provisioning' }
const path = `/api/v1/deployments/${id}`

test.each<[line: string, status: string, answer: object, method: string, path: string, body: unknown]>([
  ['cancel --yes', 'provisioning', cancelled, 'DELETE', '?cancel=true', undefined],
  ['cancel --yes --force', 'provisioning', cancelled, 'DELETE', '?cancel=true&force=true', undefined],
  ['apply', 'failed', started, 'POST', '/apply', undefined],
  ['apply --unfinished-removed', 'failed', started, 'POST', '/apply', { unfinishedRemoved: true }],
  [`apply --plan-hash ${planHash}`, 'ready', started, 'POST', '/apply', { planHash }],
  ['destroy --yes --unfinished-removed', 'failed', destroying, 'POST', '/destroy', { unfinishedRemoved: true }],
  [`destroy --yes --plan-hash ${planHash}`, 'ready', destroying, 'POST', '/destroy', { planHash }],
])('deployments %s', async (line, status, answer, method, more, body) => {
  const [verb = '', ...flags] = line.split(' ')
  const { sent } = await send(['deployments', verb, id, ...flags].join(' '), status, answer)
  expect(sent).toEqual([{ method, path: path + more, body, hasKey: true }])
})

test.each(['apply', 'destroy'])('deployments plan of %s says how to do exactly that', async operation => {
  const flags = operation === 'destroy' ? ' --destroy' : ''
  const plan = { operation, text: 'Plan: 1 to add.', json: {}, planHash }
  const { stdout, stderr } = await send(`deployments plan ${id}${flags}`, 'ready', plan)
  expect(stdout).toBe('Plan: 1 to add.\n')
  expect(stderr).toContain(`poolctl deployments ${operation} ${id} --plan-hash ${planHash}`)
})
