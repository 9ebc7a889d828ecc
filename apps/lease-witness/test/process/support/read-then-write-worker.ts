import type { Lease } from '@pool/contract/lease'
import { parseLeaseRecord } from '../../../src/kv-copy/domain/records.ts'
import { decide, includesGeneration, type LeaseState, type LeaseWrite, toWireLease } from '../../../src/lease/lease.ts'
import { parseKnownGenerations, parsePrecondition } from '../../../src/lease/request.ts'

interface Env {
  readonly LEASES: {
    readonly get: (key: string) => Promise<string | null>
    readonly put: (key: string, value: string) => Promise<void>
  }
}

interface Body {
  readonly holder: string
  readonly ttlSeconds: number
  readonly op: 'acquire' | 'renew'
}

/** Less than a write to a remote KV namespace takes. A local write is too fast for two writers to overlap in every run. */
const WRITE_MS = 100

const leaseResponse = (lease: Lease, status: 200 | 412): Response =>
  Response.json(lease, { status, headers: { ETag: `"${lease.generation}"` } })

const readResponse = (current: LeaseState | undefined, ifNoneMatch: string | null): Response => {
  if (!current) return Response.json({ error: 'not-found' }, { status: 404 })
  const { generation } = current
  const isKnown = includesGeneration(parseKnownGenerations(ifNoneMatch ?? undefined), generation)
  if (!isKnown) return leaseResponse(toWireLease(current), 200)
  return new Response(null, { status: 304, headers: { ETag: `"${generation}"` } })
}

const parseWrite = async (request: Request): Promise<LeaseWrite> => {
  const precondition = parsePrecondition(request.headers.get('If-Match') ?? undefined, undefined, { mayCreate: true })
  if (!precondition.ok) throw new Error(`invalid If-Match: ${precondition.error.code}`)
  const generation = precondition.value
  if (request.method === 'DELETE') {
    return { kind: 'release', holder: request.headers.get('X-Holder') ?? '', generation }
  }
  const { holder, ttlSeconds, op }: Body = JSON.parse(await request.text())
  return { kind: op, holder, ttlMs: ttlSeconds * 1_000, generation }
}

/**
 * The bug that the witness exists to prevent: the right decision on a state that is stale when it is written. It supports
 * only the part of the API that these tests use.
 */
const worker = {
  async fetch(request: Request, { LEASES }: Env): Promise<Response> {
    const key = new URL(request.url).pathname
    const write = request.method === 'GET' ? undefined : await parseWrite(request)
    const current = parseLeaseRecord((await LEASES.get(key)) ?? '')
    if (!write) return readResponse(current, request.headers.get('If-None-Match'))
    const decision = decide(current, write, Date.now())
    if (decision.kind === 'absent') return new Response(null, { status: 204 })
    if (decision.kind === 'rejected') return leaseResponse(toWireLease(current), 412)
    await new Promise(resolve => setTimeout(resolve, WRITE_MS))
    await LEASES.put(key, JSON.stringify(toWireLease(decision.next)))
    return decision.kind === 'released'
      ? new Response(null, { status: 204 })
      : leaseResponse(toWireLease(decision.next), 200)
  },
}

// biome-ignore lint/style/noDefaultExport: a worker is the default export of its module
export default worker
