import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { Replica } from '../environment/replica.ts'
import type { SoakEnvironment } from '../environment/stage.ts'
import { ZONE } from '../environment/zone.ts'
import type { Effect } from './inject.ts'
import { faultKinds } from './kinds.ts'
import type { PlannedFault } from './schedule.ts'

const EVERY_MS = 20
const PROBE_MS = 1_000
/** Then it counts as not recovered. */
export const RECOVERS_WITHIN_MS = 45_000

const fetched = (url: string, init: RequestInit = {}) =>
  fetch(url, { ...init, signal: AbortSignal.timeout(PROBE_MS) }).then(
    async response => ({ status: response.status, text: await response.text() }),
    () => undefined,
  )

/** Reads the database: an answer is good when that is there again. */
const answers = async ({ url }: Replica) =>
  (await fetched(`${url}/api/v1/pool/${ZONE}/check?sub=probe`).catch(() => undefined))?.status === 200

const commitAnswer = z.object({ dns: z.object({ status: z.string() }) })

export interface Prober {
  /** Milliseconds; null: it did not recover. */
  readonly recovered: (fault: PlannedFault, effect: Effect) => Promise<number | null>
}

/** Asks until what was hit serves again. These calls are the observer's own, and in no count. */
export const createProber = (stage: SoakEnvironment): Prober => {
  const { replicas, witness } = stage
  let names = 0

  /** A name is committed and its records are confirmed; whatever fails is asked again. */
  const recordsGoOut = async (): Promise<boolean> => {
    const [replica] = replicas
    if (!replica) return false
    names += 1
    const subdomain = `probe-${names}`
    const pool = `${replica.url}/api/v1/pool/${ZONE}`
    const post = (verb: string, body: object) =>
      fetched(`${pool}/${verb}`, { method: 'POST', body: JSON.stringify(body) }).catch(() => undefined)
    const reserved = await post('reserve', { subdomain })
    if (reserved?.status !== 201) return false
    const { reservationToken } = JSON.parse(reserved.text)
    await post('commit', {
      subdomain,
      reservationToken,
      sovereignFQDN: `${subdomain}.${ZONE}`,
      loadBalancerIP: '192.0.2.1',
    })
    let isOut = false
    for (const end = performance.now() + RECOVERS_WITHIN_MS; !isOut && performance.now() < end; ) {
      const shown = await fetched(`${pool}/allocations/${subdomain}`).catch(() => undefined)
      if (shown?.status === 404) return false
      isOut = shown?.status === 200 && commitAnswer.safeParse(JSON.parse(shown.text)).data?.dns.status === 'published'
      if (!isOut) await sleep(EVERY_MS)
    }
    await fetched(`${pool}/release?sub=${subdomain}`, { method: 'DELETE' }).catch(() => undefined)
    return isOut
  }
  const isWell = async ({ name, replica }: PlannedFault, { isRepaired }: Effect): Promise<boolean> => {
    const hit = replicas[replica]
    switch (faultKinds[name].recovery) {
      case 'replica':
        return hit !== undefined && (await answers(hit))
      case 'replicas':
        return (await Promise.all(replicas.map(answers))).every(Boolean)
      case 'records':
        return recordsGoOut()
      case 'zone':
        return (await isRepaired?.().catch(() => false)) ?? true
      case 'witness': {
        const headers = { Authorization: `Bearer ${witness.token}` }
        const answer = await fetched(`${witness.url}/lease/pair-0`, { headers }).catch(() => undefined)
        return answer?.status === 200 || answer?.status === 404
      }
    }
  }
  return {
    async recovered(fault, effect) {
      const started = performance.now()
      while (!(await isWell(fault, effect))) {
        if (performance.now() - started > RECOVERS_WITHIN_MS) return null
        await sleep(EVERY_MS)
      }
      return performance.now() - started
    },
  }
}
