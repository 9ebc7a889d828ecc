import { until } from '@pool/test-kit/poll.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type ReplicatedPostgres, startReplicatedPostgres } from '@pool/test-kit/replicated-postgres.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { afterEach, expect, test } from 'vitest'
import { countDoubles, findLost, startRivals, UNAVAILABLE } from '../support/rivals.ts'

const PROMOTIONS = proofSize(20, 2)
let servers: ReplicatedPostgres | undefined
const apis: Api[] = []
afterEach(async () => {
  await Promise.all(apis.splice(0).map(api => api.process.kill()))
  await servers?.remove()
  servers = undefined
})

const start = async (replication: 'synchronous' | 'asynchronous') => {
  servers = await startReplicatedPostgres(replication)
  for (let index = 0; index < 2; index += 1) {
    apis.push(await startApi(servers.url, { PDM_DATABASE_TIMEOUT: '2s', PDM_RESERVATION_TTL: '24h' }))
  }
  return { servers, apis }
}

test(`a synchronous standby is promoted ${PROMOTIONS} times under load: no acknowledged name is lost, none has two holders`, async () => {
  const pair = await start('synchronous')
  const rivals = startRivals(pair.apis)
  const table: string[] = []
  for (let promotion = 1; promotion <= PROMOTIONS; promotion += 1) {
    const acknowledged = rivals.successes()
    await until('names are reserved', () => rivals.successes() > acknowledged + 100)
    const before = rivals.holders.size
    const stoppedAt = performance.now()
    await pair.servers.failOver()
    const promotedAt = performance.now()
    const during = rivals.successes()
    await until('a name is reserved after the promotion', () => rivals.successes() > during)
    const firstSuccessMs = Math.round(performance.now() - promotedAt)
    await until('both replicas are ready', async () => {
      const statuses = await Promise.all(pair.apis.map(async api => (await api.call('GET', '/readyz')).status))
      return statuses.every(status => status === 200)
    })
    const lost = await findLost(pair.servers.primaryUrl(), new Map([...rivals.holders].slice(0, before)))
    const doubles = countDoubles(rivals.holders)
    table.push(
      `${promotion}: promoted in ${Math.round(promotedAt - stoppedAt)} ms, first success ${firstSuccessMs} ms later, ` +
        `${before} acknowledged, ${lost.length} lost, ${doubles} with two holders`,
    )
    expect([lost, doubles]).toEqual([[], 0])
    await pair.servers.rejoin()
  }
  await rivals.stop()
  const lost = await findLost(pair.servers.primaryUrl(), rivals.holders)
  process.stdout.write(`${table.join('\n')}\n`)
  reportProof(
    `${PROMOTIONS} promotions, ${rivals.holders.size} acknowledged names: ${lost.length} lost, ` +
      `${countDoubles(rivals.holders)} with two holders, ${JSON.stringify(Object.fromEntries(rivals.outcomes))}`,
  )
  expect(lost).toEqual([])
  expect(countDoubles(rivals.holders)).toBe(0)
  expect([...rivals.outcomes.keys()].filter(outcome => !UNAVAILABLE.test(outcome))).toEqual([])
}, 1_200_000)

test('with an asynchronous standby, the log and a metric say that acknowledged names can be lost', async () => {
  const pair = await start('asynchronous')
  const [api] = pair.apis
  if (!api) throw new Error('no replica')
  expect(api.lines.filter(line => line.includes('acknowledged writes can be lost'))).toEqual([
    expect.stringContaining('"durability":"asynchronous"'),
  ])
  expect((await api.call('GET', '/metrics')).text).toContain('pdm_database_durability{mode="asynchronous"} 1')

  const rivals = startRivals(pair.apis)
  await until('names are reserved', () => rivals.successes() > 50)
  await pair.servers.pauseReplication()
  const paused = rivals.successes()
  await until('names are reserved that the standby lacks', () => rivals.successes() > paused + 50)
  await pair.servers.failOver()
  const promoted = rivals.successes()
  await until('a name is reserved after the promotion', () => rivals.successes() > promoted)
  await rivals.stop()
  const lost = await findLost(pair.servers.primaryUrl(), rivals.holders)
  reportProof(`asynchronous standby: ${lost.length} of ${rivals.holders.size} acknowledged names lost`)
  expect(lost.length).toBeGreaterThan(0)
})

test('a service whose only server is a standby waits, and is ready soon after the promotion', async () => {
  const pair = await start('synchronous')
  await using api = await startApi(pair.servers.standbyUrl(), {}, { isReady: line => line.msg === 'listening' })
  const isWaiting = (line: string) => /the database accepts no writes; .* \(25006\)/.test(line)
  await until('it waits', () => api.lines.some(isWaiting))
  expect((await api.call('GET', '/readyz')).body).toEqual({ status: 'starting' })
  await pair.servers.failOver()
  await until('it is ready', async () => (await api.call('GET', '/readyz')).status === 200)
})
