import { spawnSync } from 'node:child_process'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { startAllocationApi, type TestAllocationApi } from '@pool/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AllocationClient, type LogEntry, type Params } from '../src/index.ts'

// The calls of deployments against the service with Terraform.

const isInstalled = ['terraform', 'tofu'].some(tool => spawnSync(tool, ['version']).error === undefined)
const missing = isInstalled
  ? undefined
  : 'the client and deployments: missing terraform or tofu (https://developer.hashicorp.com/terraform/install)'

const input: Params<'createDeployment'> = {
  orgName: 'Acme',
  orgEmail: 'ops@acme.example',
  sovereignDomainMode: 'pool',
  sovereignPoolDomain: 'pool.test',
  sovereignSubdomain: 'acme',
  providers: ['local'],
  region: 'local',
  sshPublicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f tests',
}

const collect = async <Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> => {
  const seen: Item[] = []
  for await (const item of items) seen.push(item)
  return seen
}
const toIds = (entries: readonly LogEntry[]) => entries.flatMap(entry => (entry.kind === 'line' ? entry.id : []))
const toEnd = (entries: readonly LogEntry[]) => {
  const last = entries.at(-1)
  return last?.kind === 'done' ? last.deployment.status : undefined
}

/** Breaks the connection of each of the first streams after some bytes, in the middle of an event. */
const breakStreams = (count: number, bytes: number) => {
  const resumedAfter: (string | null)[] = []
  const send: typeof fetch = async (url, init) => {
    const response = await fetch(url, init)
    if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) return response
    resumedAfter.push(new Headers(init?.headers).get('Last-Event-ID'))
    if (resumedAfter.length > count) return response
    let left = bytes
    const cut = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        controller.enqueue(chunk.slice(0, left))
        left -= chunk.length
        if (left <= 0) controller.error(new TypeError('terminated'))
      },
    })
    return new Response(response.body?.pipeThrough(cut), response)
  }
  return { send, resumedAfter }
}

describe.skipIf(shouldSkip(missing))('a deployment', () => {
  let api: TestAllocationApi
  beforeAll(async () => {
    api = await startAllocationApi()
  })
  afterAll(() => api?.stop())

  test('is created once, followed, planned, applied, destroyed and deleted', { timeout: 180_000 }, async () => {
    const client = new AllocationClient({ baseUrl: api.url, retry: { minBackoffMs: 1, maxBackoffMs: 20 } })
    const operator = new AllocationClient({ baseUrl: api.operatorUrl, token: api.operatorToken })

    const lost = await api.dropNextResponse({ method: 'POST', path: '/api/v1/deployments' })
    const { id, deploymentToken } = await client.createDeployment(input)
    await lost.occurred()
    expect(await collect(client.deployments({ limit: 1 }))).toMatchObject([{ id, orgName: 'Acme' }])

    const created = await collect(client.followLogs({ id }))
    expect(toEnd(created)).toBe('ready')
    const { numEvents } = await client.getDeployment({ id })
    expect(toIds(created)).toEqual(Array.from({ length: numEvents }, (_, index) => String(index + 1)))

    const { send, resumedAfter } = breakStreams(3, 700)
    const broken = new AllocationClient({ baseUrl: api.url, fetch: send, retry: { minBackoffMs: 1, maxBackoffMs: 20 } })
    expect(await collect(broken.followLogs({ id }))).toEqual(created)
    expect(resumedAfter).toHaveLength(4)
    const resumed = resumedAfter.map(Number)
    expect(resumed).toEqual([...new Set(resumed)].sort((a, b) => a - b))
    expect(toIds(await collect(client.followLogs({ id, lastEventId: String(numEvents - 2) })))).toHaveLength(2)

    expect(await client.planDeployment({ id, deploymentToken, operation: 'apply' })).toMatchObject({
      text: expect.stringContaining('No changes.'),
    })
    const lose = (call: string) => api.dropNextResponse({ method: 'POST', path: `/api/v1/deployments/${id}/${call}` })
    const lostApply = await lose('apply')
    await client.applyDeployment({ id, deploymentToken })
    await lostApply.occurred()
    expect(toEnd(await collect(client.followLogs({ id, lastEventId: String(numEvents) })))).toBe('ready')
    await expect(client.removeDeployment({ id, deploymentToken })).rejects.toMatchObject({ code: 'still-up' })
    await expect(operator.unlockDeployment({ id })).rejects.toMatchObject({ code: 'lock-not-recorded' })

    const lostDestroy = await lose('destroy')
    await client.destroyDeployment({ id, deploymentToken })
    await lostDestroy.occurred()
    expect(toEnd(await collect(client.followLogs({ id })))).toBe('destroyed')
    expect(await client.removeDeployment({ id, deploymentToken })).toBe(undefined)
    await expect(collect(client.followLogs({ id }))).rejects.toMatchObject({ code: 'not-found' })
    const events = await collect(operator.deploymentHistoryEntries({ deployment: id, limit: 2 }))
    // Each once, although the client repeated its request.
    expect(events.map(({ event }) => event).toReversed()).toEqual([
      ...['created', 'ready', 'apply-requested', 'ready', 'destroy-requested', 'destroyed', 'deleted'],
    ])
  })

  test('fields that the service rejects are in the error', async () => {
    const client = new AllocationClient({ baseUrl: api.url })
    const error = await client.createDeployment({ ...input, orgEmail: 'nonsense' }).catch((e: unknown) => e)
    expect(error).toMatchObject({ status: 400, code: 'invalid-deployment', body: { faults: [{ field: 'orgEmail' }] } })
  })
})
