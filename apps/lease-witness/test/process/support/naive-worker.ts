import type { Lease } from '@pool/contract/lease'
import { parseRecord } from '../../../src/kv-copy/domain/import-legacy.ts'
import { decide, includesGeneration, type LeaseState, toWire, type WriteRequest } from '../../../src/lease/lease.ts'
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

/** Less than a namespace far away takes for it; a local one answers too soon for two writers to meet in every run. */
const WRITE_MS = 100

const show = (lease: Lease, status: 200 | 412): Response =>
  Response.json(lease, { status, headers: { ETag: `"${lease.generation}"` } })

const read = (current: LeaseState | undefined, known: string | null): Response => {
  if (!current) return Response.json({ error: 'not-found' }, { status: 404 })
  const { generation } = current
  if (!includesGeneration(parseKnownGenerations(known ?? undefined), generation)) return show(toWire(current), 200)
  return new Response(null, { status: 304, headers: { ETag: `"${generation}"` } })
}

const requestOf = async (request: Request): Promise<WriteRequest> => {
  const precondition = parsePrecondition(request.headers.get('If-Match') ?? undefined, undefined, {
    mayCreate: true,
  })
  if (!precondition.ok) throw new Error('If-Match names no generation')
  const generation = precondition.value
  if (request.method === 'DELETE') {
    return { kind: 'release', holder: request.headers.get('X-Holder') ?? '', generation }
  }
  const { holder, ttlSeconds, op }: Body = JSON.parse(await request.text())
  return { kind: op, holder, ttlMs: ttlSeconds * 1_000, generation }
}

/**
 * The fault that the witness is there to end: right rules, on a state that was read before it is written. It knows as much
 * of the wire as the senders here use.
 */
const worker = {
  async fetch(request: Request, { LEASES }: Env): Promise<Response> {
    const key = new URL(request.url).pathname
    const write = request.method === 'GET' ? undefined : await requestOf(request)
    const current = parseRecord((await LEASES.get(key)) ?? '')
    if (!write) return read(current, request.headers.get('If-None-Match'))
    const decision = decide(current, write, Date.now())
    if (decision.kind === 'absent') return new Response(null, { status: 204 })
    if (decision.kind === 'rejected') return show(toWire(current), 412)
    await new Promise(resolve => setTimeout(resolve, WRITE_MS))
    await LEASES.put(key, JSON.stringify(toWire(decision.next)))
    return decision.kind === 'released' ? new Response(null, { status: 204 }) : show(toWire(decision.next), 200)
  },
}

// biome-ignore lint/style/noDefaultExport: a worker is the default export of its module
export default worker
