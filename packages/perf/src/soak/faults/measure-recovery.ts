import { setTimeout as sleep } from 'node:timers/promises'
import * as z from 'zod'
import type { SoakEnvironment } from '../environment/environment.ts'
import type { Replica } from '../environment/replica.ts'
import { ZONE } from '../environment/zone.ts'
import type { ActiveFault } from './active-fault.ts'
import { faultKinds } from './kinds.ts'
import type { PlannedFault } from './schedule.ts'

const PROBE_INTERVAL_MS = 20
const PROBE_TIMEOUT_MS = 1_000
/** After this time the fault counts as not recovered. */
export const MAX_RECOVERY_MS = 45_000
/** From the first write that the database accepts after the fault. */
export const MAX_READINESS_MS = 5_000

const fetchText = (url: string, init: RequestInit = {}) =>
  fetch(url, { ...init, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) }).then(
    async response => ({ status: response.status, text: await response.text() }),
    () => undefined,
  )

/** The readiness probe writes a row. The check uses other connections. */
const isReady = async ({ url }: Replica) => {
  const paths = ['/readyz', `/api/v1/pool/${ZONE}/check?sub=probe`]
  const responses = await Promise.all(paths.map(path => fetchText(url + path)))
  return responses.every(response => response?.status === 200)
}

const isWritable = ({ sql }: SoakEnvironment): Promise<boolean> =>
  sql`insert into soak_writes default values`.then(
    () => true,
    () => false,
  )

export interface FaultRecovery {
  /** Milliseconds from the end of the fault to the recovery; null: none within MAX_RECOVERY_MS. */
  readonly recoveryMs: number | null
  /** Milliseconds for which the database accepted writes before the recovery, without another fault. */
  readonly writableMs: number
}

const allocationResponse = z.object({ dns: z.object({ status: z.string() }) })

/** Polls an affected component until it works again. The recorder does not count these calls. */
export class RecoveryProbe {
  readonly #environment: SoakEnvironment
  #nameCount = 0

  constructor(environment: SoakEnvironment) {
    this.#environment = environment
  }

  async measure(fault: PlannedFault, active: ActiveFault, isOtherFaultActive: () => boolean): Promise<FaultRecovery> {
    const started = performance.now()
    let writableAt: number | undefined
    for (;;) {
      if (isOtherFaultActive()) writableAt = undefined
      else if (writableAt === undefined && (await isWritable(this.#environment))) writableAt = performance.now()
      const isRecovered = await this.#isRecovered(fault, active)
      const now = performance.now()
      const writableMs = now - (writableAt ?? now)
      if (isRecovered) return { recoveryMs: now - started, writableMs }
      if (now - started > MAX_RECOVERY_MS) return { recoveryMs: null, writableMs }
      await sleep(PROBE_INTERVAL_MS)
    }
  }

  async #isRecovered({ name, replica }: PlannedFault, { isRepaired }: ActiveFault): Promise<boolean> {
    const { replicas, witness } = this.#environment
    const affected = replicas[replica]
    switch (faultKinds[name].recovery) {
      case 'replica':
        return affected !== undefined && (await isReady(affected))
      case 'replicas':
        return (await Promise.all(replicas.map(isReady))).every(Boolean)
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
