import { setTimeout as sleep } from 'node:timers/promises'
import { EXTERNAL_DNS_MEDIA_TYPE } from '@pool/contract'
import { readCpuUs } from '@pool/test-kit/processes.ts'
import { proofScale, proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import pLimit from 'p-limit'
import { expect, test } from 'vitest'
import { createSteps, poolPath, startTestService } from '../support/service.ts'
import { recordsEnv } from '../support/tenant-records.ts'

// The requests of external-dns for many names, as it sends them, without its processes: a cycle without changes is a GET and an
// adjustment.

const NAMES = proofSize(1_000, 20)
const SLICES = proofSize(40, 4)
const COMMITS_OF_SLICE = 100
/** The default interval of external-dns. */
const INTERVAL_MS = 60_000
const CLIENTS = 4

const service = await startTestService(recordsEnv)
const { api } = service
const { commitBody } = createSteps(service.call)
const send = async (method: string, path: string, body: unknown, token?: string): Promise<string> => {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}`, Accept: EXTERNAL_DNS_MEDIA_TYPE }
  const { status, text } = await api.call(method, path, body, headers)
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
  return text
}

/** Reserves and commits a name. Returns its token, and how long the commit took in milliseconds. */
const activate = async (subdomain: string) => {
  const { reservationToken } = JSON.parse(await send('POST', `${poolPath}/reserve`, { subdomain }))
  const started = performance.now()
  await send('POST', `${poolPath}/commit`, commitBody(subdomain, reservationToken))
  return { reservationToken, ms: performance.now() - started }
}

const toEndpoints = (subdomain: string) =>
  ['shop', 'www', 'a.apps'].map(label => ({
    dnsName: `${label}.${subdomain}.pool.test`,
    recordType: 'A',
    targets: ['192.0.2.1'],
    recordTTL: 300,
  }))

const RECORDS = '/api/v1/records/external-dns'
const createClient = async (n: number) => {
  const subdomain = `n${n}`
  const { reservationToken } = await activate(subdomain)
  const minted = await send('POST', `${poolPath}/tokens`, { subdomain, reservationToken, scope: 'records' })
  const { token } = JSON.parse(minted)
  const endpoints = toEndpoints(subdomain)
  await send('POST', `${RECORDS}/records`, { create: endpoints }, token)
  const body = JSON.stringify(endpoints)
  /** A cycle without changes. With `isChecked`, what is there must be what is wanted, which costs this process time. */
  return async (isChecked = false): Promise<void> => {
    const found = await send('GET', `${RECORDS}/records`, undefined, token)
    const adjusted = await send('POST', `${RECORDS}/adjustendpoints`, body, token)
    if (!isChecked) return
    const [current, wanted] = [JSON.parse(found), JSON.parse(adjusted)]
    const sort = (list: typeof endpoints) => list.toSorted((a, b) => (a.dnsName < b.dnsName ? -1 : 1))
    expect(sort(current)).toEqual(sort(wanted))
  }
}

const toP99 = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.ceil(0.99 * times.length) - 1] ?? 0

test(`external-dns for ${NAMES} names: what a cycle costs, and commits beside it`, { timeout: 3_600_000 }, async () => {
  const limit = pLimit(CLIENTS)
  const cycles = await Promise.all(Array.from({ length: NAMES }, (_, n) => limit(() => createClient(n))))
  const runAll = (isChecked: boolean) => Promise.all(cycles.map(cycle => limit(() => cycle(isChecked))))
  await runAll(true)

  const { pid } = api.process
  const [cpuBefore, started] = [readCpuUs(pid) ?? 0, performance.now()]
  await runAll(false)
  const requests = 2 * NAMES
  const perSecond = requests / ((performance.now() - started) / 1_000)
  const cpuMs = ((readCpuUs(pid) ?? 0) - cpuBefore) / 1_000 / requests

  const times: Record<'with' | 'without', number[]> = { with: [], without: [] }
  let next = 0
  for (let slice = 0; slice < SLICES; slice += 1) {
    // With, without, without, with: a trend of the machine concerns both.
    const kind = slice % 4 === 0 || slice % 4 === 3 ? 'with' : 'without'
    const background: Promise<void>[] = []
    const state = { isOver: false }
    const pace = async () => {
      for (const begun = performance.now(); !state.isOver; ) {
        const due = begun + (background.length * INTERVAL_MS) / NAMES
        await sleep(Math.max(0, due - performance.now()))
        background.push(cycles[next % NAMES]?.() ?? Promise.resolve())
        next += 1
      }
    }
    const paced = kind === 'with' ? pace() : Promise.resolve()
    for (let i = 0; i < COMMITS_OF_SLICE; i += 1) {
      const subdomain = `c${slice}-${i}`
      const { reservationToken, ms } = await activate(subdomain)
      times[kind].push(ms)
      await send('DELETE', `${poolPath}/release`, { subdomain, reservationToken })
    }
    state.isOver = true
    await paced
    await Promise.all(background)
  }

  const [withP99, withoutP99] = [toP99(times.with), toP99(times.without)]
  const ratio = withP99 / withoutP99
  reportProof(
    `external-dns for ${NAMES} names: ${perSecond.toFixed(0)} requests/s with ${CLIENTS} clients, ${cpuMs.toFixed(2)} ms CPU per request; ` +
      `${times.with.length} commits each, p99 ${withP99.toFixed(1)} ms beside ${((2_000 * NAMES) / INTERVAL_MS).toFixed(0)} requests/s, ` +
      `${withoutP99.toFixed(1)} ms without: ratio ${ratio.toFixed(2)} (target 1.2)`,
  )
  expect(next).toBeGreaterThan(0)
  // A slice of a smaller run is too short for a p99.
  if (proofScale() >= 1) expect(ratio).toBeLessThanOrEqual(1.2)
})
