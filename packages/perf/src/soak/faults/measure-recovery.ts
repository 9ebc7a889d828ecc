import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { SoakEnvironment } from '../environment/environment.ts'
import type { Replica } from '../environment/replica.ts'
import { ZONE } from '../environment/zone.ts'
import type { ActiveFault } from './inject.ts'
import { faultKinds } from './kinds.ts'
import type { PlannedFault } from './schedule.ts'

const PROBE_INTERVAL_MS = 20
const PROBE_TIMEOUT_MS = 1_000
/** After this time the fault counts as not recovered. */
export const MAX_RECOVERY_MS = 45_000

const fetchText = (url: string, init: RequestInit = {}) =>
  fetch(url, { ...init, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) }).then(
    async response => ({ status: response.status, text: await response.text() }),
    () => undefined,
  )

/** The check reads the database, so 200 means that the database is available again. */
const isReady = async ({ url }: Replica) =>
  (await fetchText(`${url}/api/v1/pool/${ZONE}/check?sub=probe`))?.status === 200

/** The readiness probe writes a row. */
const acceptsWrites = async ({ url }: Replica) => (await fetchText(`${url}/readyz`))?.status === 200

const allocationResponse = z.object({ dns: z.object({ status: z.string() }) })

/** Polls an affected component until it works again. The recorder does not count these calls. */
export class RecoveryProbe {
  readonly #environment: SoakEnvironment
  #nameCount = 0

  constructor(environment: SoakEnvironment) {
    this.#environment = environment
  }

  /** Milliseconds until the recovery; null: none within MAX_RECOVERY_MS. */
  async measure(fault: PlannedFault, active: ActiveFault): Promise<number | null> {
    const started = performance.now()
    while (!(await this.#isRecovered(fault, active))) {
      if (performance.now() - started > MAX_RECOVERY_MS) return null
      await sleep(PROBE_INTERVAL_MS)
    }
    return performance.now() - started
  }

  async #isRecovered({ name, replica }: PlannedFault, { isRepaired }: ActiveFault): Promise<boolean> {
    const { replicas, witness } = this.#environment
    const affected = replicas[replica]
    switch (faultKinds[name].recovery) {
      case 'replica':
        return affected !== undefined && (await isReady(affected))
      case 'replicas':
        return (await Promise.all(replicas.map(isReady))).every(Boolean)
      case 'writes':
        return (await Promise.all(replicas.map(acceptsWrites))).every(Boolean)
      case 'records':
        return this.#canPublishRecords()
      case 'zone':
        return (await isRepaired?.().catch(() => false)) ?? true
      case 'witness': {
        const headers = { Authorization: `Bearer ${witness.token}` }
        const response = await fetchText(`${witness.url}/lease/pair-0`, { headers })
        return response?.status === 200 || response?.status === 404
      }
    }
  }

  /** Reserves and commits a new name and waits until its records are published. False: try again. */
  async #canPublishRecords(): Promise<boolean> {
    const [replica] = this.#environment.replicas
    if (!replica) return false
    this.#nameCount += 1
    const subdomain = `probe-${this.#nameCount}`
    const pool = `${replica.url}/api/v1/pool/${ZONE}`
    const post = (path: string, body: object) =>
      fetchText(`${pool}/${path}`, { method: 'POST', body: JSON.stringify(body) })
    const reserved = await post('reserve', { subdomain })
    if (reserved?.status !== 201) return false
    const { reservationToken } = JSON.parse(reserved.text)
    await post('commit', {
      subdomain,
      reservationToken,
      sovereignFQDN: `${subdomain}.${ZONE}`,
      loadBalancerIP: '192.0.2.1',
    })
    let isPublished = false
    for (const end = performance.now() + MAX_RECOVERY_MS; !isPublished && performance.now() < end; ) {
      const response = await fetchText(`${pool}/allocations/${subdomain}`)
      if (response?.status === 404) return false
      isPublished =
        response?.status === 200 &&
        allocationResponse.safeParse(JSON.parse(response.text)).data?.dns.status === 'published'
      if (!isPublished) await sleep(PROBE_INTERVAL_MS)
    }
    await fetchText(`${pool}/release?sub=${subdomain}`, { method: 'DELETE' })
    return isPublished
  }
}
