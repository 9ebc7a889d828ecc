import { setTimeout as sleep } from 'node:timers/promises'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Api, type ApiResponse, startApi } from '@pool/test-kit/services.ts'
import { expect, onTestFinished, test } from 'vitest'
import { useTestDatabase } from '../support/database.ts'
import { commit, pool, reserve } from '../support/operations.ts'
import { tokenDigest } from '../support/token-repository.ts'

const OPERATIONS = proofSize(100_000, 1_500)
/** Every second name is not released. */
const OPERATIONS_PER_NAME = 5
const CLIENTS = 32
const REPLICAS = 2
/** Between a kill and the next one. */
const KILL_AFTER_ANSWERS = Math.max(400, OPERATIONS / 50)

const database = await useTestDatabase()

test('under kills each key has one success at most, which every later retry replays, and no token is lost or repeated', {
  timeout: 180_000 + 12 * OPERATIONS,
}, async () => {
  const start = () => startApi(database.url, { PDM_DNS_COMMIT_WAIT: '0s', PDM_SWEEPER_INTERVAL: '1h' })
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, start))
  onTestFinished(async () => void (await Promise.all(replicas.map(api => api.process.kill()))))
  let [answers, unanswered, kills, isDone] = [0, 0, 0, false]
  const killReplicas = async () => {
    for (let next = KILL_AFTER_ANSWERS; !isDone; ) {
      if (answers < next) await sleep(10)
      else {
        const index = kills % REPLICAS
        await replicas[index]?.process.kill()
        kills += 1
        replicas[index] = await start()
        next = answers + KILL_AFTER_ANSWERS
      }
    }
  }

  /** Repeats a request, on any replica, until one answers. A 503 says that the outcome is unknown, or that nothing changed. */
  const settle = async (send: (api: Api) => Promise<ApiResponse>): Promise<ApiResponse> => {
    for (let attempt = 0; ; attempt += 1) {
      const api = replicas[(answers + attempt) % REPLICAS] as Api
      const response = await send(api).catch(() => null)
      if (response && response.status !== 503) {
        answers += 1
        return response
      }
      unanswered += 1
      await sleep(20)
    }
  }
  /** The first answer under a key. The second one is the same, but for the status of the records. */
  const sendUnderKey = async (send: (api: Api) => Promise<ApiResponse>, field?: string) => {
    const [first, second] = [await settle(send), await settle(send)]
    const select = ({ status, body }: ApiResponse) => [status < 300, field && body[field]]
    expect(select(first)[0], first.text).toBe(true)
    expect(select(second)).toEqual(select(first))
    return first.body
  }

  const tokens = new Map<string, string>()
  const useName = async (name: string) => {
    const key = (operation: string) => ({ 'Idempotency-Key': `${operation}-${name}-${crypto.randomUUID()}` })
    const [reserveKey, commitKey, releaseKey] = ['reserve', 'commit', 'release'].map(key)
    const { reservationToken } = await sendUnderKey(api => reserve(api, name, reserveKey), 'reservationToken')
    tokens.set(name, reservationToken)
    await sendUnderKey(api => commit(api, name, reservationToken, '192.0.2.1', commitKey), 'committedAt')
    if (tokens.size % 2 === 0) return
    const body = { subdomain: name, reservationToken }
    await sendUnderKey(api => api.call('DELETE', `/api/v1/pool/${pool}/release`, body, releaseKey))
  }
  const names = Array.from({ length: Math.ceil(OPERATIONS / OPERATIONS_PER_NAME) }, (_, i) => `keyed-${i}`)
  const queue = names.values()
  const client = async () => {
    for (const name of queue) await useName(name)
  }
  const killing = killReplicas()
  await Promise.all(Array.from({ length: CLIENTS }, client)).finally(() => {
    isDone = true
  })
  await killing

  expect(new Set(tokens.values()).size).toBe(names.length)
  const rows = await database.sql<{ name: string; events: string; digest: string | null }[]>`
    select subdomain as name, string_agg(event, ' ' order by h.id) as events, encode(min(token_hash), 'hex') as digest
    from allocation_history h left join pool_allocations using (subdomain)
    where actor <> 'convergence' group by subdomain`
  expect(rows).toHaveLength(names.length)
  for (const { name, events, digest } of rows) {
    expect(events).toBe(digest === null ? 'reserved committed released' : 'reserved committed')
    if (digest !== null) expect(digest).toBe(tokenDigest(tokens.get(name) ?? ''))
  }
  expect(kills).toBeGreaterThan(1)
  reportProof(`keys: ${answers} answers under ${kills} kills of a replica, ${unanswered} attempts without one`)
})
