import {
  type LeaseHistory,
  type LeaseList,
  type LeaseStatusList,
  leaseHistory,
  leaseList,
  leaseStatusList,
  NEVER_WRITTEN,
} from '@pool/contract'
import * as z from 'zod'
import type { WitnessSettings } from '../config/witness.ts'

export interface LeasesQuery {
  /** The leases of these slots, exactly. */
  readonly slot?: readonly string[] | undefined
  readonly prefix?: string | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** The lease as the operator saw it. */
export interface ObservedLease {
  readonly slot: string
  readonly holder: string
  readonly generation: number
}

export interface WitnessFailure {
  readonly kind:
    | 'witness-unavailable'
    | 'not-found'
    | 'invalid-format'
    | 'invalid-cursor'
    | 'forbidden'
    | 'lease-changed'
  /** For an operator. Never text of the token, nor of the response. */
  readonly detail: string
}

type WitnessResult<Value> = { readonly kind: 'done'; readonly value: Value } | WitnessFailure

export interface Witness {
  list(query: LeasesQuery): Promise<WitnessResult<LeaseList | LeaseStatusList>>
  history(slot: string): Promise<WitnessResult<LeaseHistory>>
  release(lease: ObservedLease): Promise<WitnessResult<undefined>>
}

const NOT_CONFIGURED: WitnessFailure = {
  kind: 'not-found',
  detail: 'No lease witness is configured; set PDM_WITNESS_URL and PDM_WITNESS_TOKEN.',
}

/** What operators see without PDM_WITNESS_URL. */
export const noWitness: Witness = {
  list: async () => NOT_CONFIGURED,
  history: async () => NOT_CONFIGURED,
  release: async () => NOT_CONFIGURED,
}

const DETAILS: Readonly<Record<number, WitnessFailure>> = {
  400: { kind: 'invalid-format', detail: 'The witness rejects the request as invalid; check the slot and the cursor.' },
  404: {
    kind: 'not-found',
    detail: 'There is no lease witness at PDM_WITNESS_URL, or its path is wrong; check it.',
  },
  401: {
    kind: 'witness-unavailable',
    detail: 'The witness rejects the token of this service; check PDM_WITNESS_TOKEN.',
  },
  403: {
    kind: 'forbidden',
    detail: 'The policy of the token at the witness does not permit this request; check TOKEN_POLICIES there.',
  },
  412: { kind: 'lease-changed', detail: 'The lease has another holder or generation now; read it again.' },
  429: { kind: 'witness-unavailable', detail: 'The token of this service has used up its requests at the witness.' },
}

const UNSENDABLE: WitnessFailure = {
  kind: 'invalid-format',
  detail: 'A slot named "." or ".." cannot be sent in a URL.',
}

const NOTHING = z.undefined()

/** Sends the few requests to the lease witness that operators need. Its token leaves this module for the witness only. */
export const createWitness = ({
  url,
  token,
  timeoutMs,
}: WitnessSettings & { /** Of one request. */ readonly timeoutMs: number }): Witness => {
  const send = async <Schema extends z.ZodType>(
    method: string,
    path: string,
    schema: Schema,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<WitnessResult<z.output<Schema>>> => {
    let status: number
    let text: string
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { ...headers, Authorization: `Bearer ${token}` },
        // Another host must not get the token.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      })
      status = response.status
      text = await response.text()
    } catch (error) {
      const isLate = error instanceof DOMException && error.name === 'TimeoutError'
      const reason = isLate ? `did not respond within ${timeoutMs / 1_000} s` : 'could not be reached'
      return { kind: 'witness-unavailable', detail: `The witness ${reason}; check PDM_WITNESS_URL and the witness.` }
    }
    if (status === 404 && text.includes(NEVER_WRITTEN)) return { kind: 'not-found', detail: NEVER_WRITTEN }
    const failure = DETAILS[status]
    if (failure) return failure
    if (status !== 200 && status !== 204) {
      return { kind: 'witness-unavailable', detail: `The witness responded with status ${status}; retry later.` }
    }
    let json: unknown
    try {
      json = text === '' ? undefined : JSON.parse(text)
    } catch {
      json = null
    }
    const parsed = schema.safeParse(json)
    return parsed.success
      ? { kind: 'done', value: parsed.data }
      : { kind: 'witness-unavailable', detail: 'The response is not that of a lease witness; check PDM_WITNESS_URL.' }
  }

  const toSlotPath = (slot: string): string | null => (/^\.{1,2}$/.test(slot) ? null : encodeURIComponent(slot))

  return {
    async list({ slot = [], ...page }) {
      const query = new URLSearchParams(slot.map((name): [string, string] => ['slot', name]))
      for (const [name, value] of Object.entries(page)) if (value !== undefined) query.append(name, String(value))
      const text = query.size === 0 ? '' : `?${query}`
      return send('GET', `/leases${text}`, slot.length > 0 ? leaseStatusList : leaseList)
    },

    async history(slot) {
      const path = toSlotPath(slot)
      return path === null ? UNSENDABLE : send('GET', `/history/${path}`, leaseHistory)
    },

    async release({ slot, holder, generation }) {
      const path = toSlotPath(slot)
      if (path === null) return UNSENDABLE
      return send('DELETE', `/lease/${path}`, NOTHING, { 'If-Match': `"${generation}"`, 'X-Holder': holder })
    },
  }
}
