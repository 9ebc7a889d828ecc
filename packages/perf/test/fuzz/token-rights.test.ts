import { leaseWitnessDocument } from '@pool/contract/openapi/lease-witness'
import { HttpResponse } from '@pool/test-kit/http1.ts'
import fc from 'fast-check'
import { createApp } from 'lease-witness/src/app.ts'
import { decide, type LeaseState, toWireLease } from 'lease-witness/src/lease/lease.ts'
import type { LeaseService } from 'lease-witness/src/lease-service.ts'
import { expect, test } from 'vitest'
import { createChoices, createSequence } from '../../src/fuzz/generate/choices.ts'
import { createWitnessWorkload } from '../../src/fuzz/generate/witness-workload.ts'
import { readDocument } from '../../src/fuzz/oracle/document.ts'
import { findRightsViolations } from '../../src/fuzz/oracle/token-rights.ts'
import type { FuzzRequest } from '../../src/fuzz/request.ts'
import { createWitnessTokens } from '../../src/fuzz/witness-tokens.ts'

const CLIENTS = 16
const REQUESTS_PER_CLIENT = 150

const document = readDocument(leaseWitnessDocument(), { problem: 'LeaseProblem', greedy: ['slot'] })
const { rights, settings } = createWitnessTokens('Mark', CLIENTS)
const policies: readonly Readonly<Record<string, unknown>>[] = JSON.parse(settings.TOKEN_POLICIES ?? '')
const FULL = rights[0]?.token ?? ''

/** The routes of the witness, with leases in memory. */
const createWitness = (changed: typeof policies) => {
  const states = new Map<string, LeaseState>()
  const observe = (slot: string) => ({ lease: toWireLease(states.get(slot)), remainingMs: undefined })
  const leases: LeaseService = {
    read: async ({ slot }) => (states.has(slot) ? { kind: 'lease', ...observe(slot) } : { kind: 'absent' }),
    wait: async ({ slot }) => (states.has(slot) ? { kind: 'lease', ...observe(slot) } : { kind: 'absent' }),
    write: async ({ slot }, write) => {
      const decision = decide(states.get(slot), write, 0)
      if (decision.kind === 'absent') return decision
      if (decision.kind === 'rejected') return { ...decision, ...observe(slot) }
      states.set(slot, decision.next)
      return { kind: decision.kind, ...observe(slot) }
    },
    history: async ({ slot }) => (states.has(slot) ? { kind: 'history', transitions: [] } : { kind: 'absent' }),
    readMany: async addresses => addresses.map(({ slot }) => ({ kind: 'lease', ...observe(slot), waiters: 0 })),
    checkHealth: async () => true,
  }
  const list = async ({ prefix = '' }) => {
    const slots = [...states.keys()].filter(slot => slot.startsWith(prefix))
    return { kind: 'listed', leases: slots.map(slot => ({ slot, ...toWireLease(states.get(slot)) })) } as const
  }
  return createApp(
    { ...settings, TOKEN_POLICIES: JSON.stringify(changed), LOG_LEVEL: 'error' },
    { leases, directory: { list: async query => ({ ...(await list(query)), nextCursor: undefined }) } },
  )
}

/** Null: `Request` cannot represent it. */
const toRequest = ({ method, target, headers, body, raw, row }: FuzzRequest): Request | null => {
  if (raw || row === 'framing' || !target.startsWith('/') || ['TRACE', 'CONNECT'].includes(method)) return null
  try {
    const pairs = headers.map(line => /^([^:]+):\s*(.*)$/.exec(line)?.slice(1) as [string, string])
    const content = body && !['GET', 'HEAD'].includes(method) ? { body: new Uint8Array(body) } : {}
    return new Request(`http://witness${target}`, { method, headers: pairs, ...content })
  } catch {
    return null
  }
}

interface Bug {
  /** Replaces the policies of the witness; the oracle knows the original ones. */
  readonly policies?: typeof policies
  /** Requests whose rights the witness does not check. */
  readonly isUnchecked?: (request: Request) => boolean
}

/** Every client sends its requests. Returns what the oracle finds, up to the first violation that matches. */
const runWith = async (
  { policies: changed = policies, isUnchecked = () => false }: Bug,
  until?: RegExp,
): Promise<Set<string>> => {
  const app = createWitness(changed)
  const violations = new Set<string>()
  for (const [number, own] of rights.entries()) {
    const workload = createWitnessWorkload({ document, number, token: own.token })
    const sequences = fc.array(createSequence(1), { minLength: REQUESTS_PER_CLIENT, maxLength: REQUESTS_PER_CLIENT })
    const [sequence = []] = fc.sample(sequences, { seed: number, numRuns: 1 })
    for (const generate of sequence.flat()) {
      const { request, learn } = workload.next(createChoices(generate))
      const sent = toRequest(request)
      if (!sent) continue
      if (isUnchecked(sent)) sent.headers.set('Authorization', `Bearer ${FULL}`)
      const received = await app.fetch(sent)
      const lines = [...received.headers].map(([name, value]) => `\r\n${name}: ${value}`).join('')
      const response = new HttpResponse(received.status, lines, Buffer.from(await received.arrayBuffer()), false)
      learn(response)
      for (const violation of findRightsViolations(own, request, response)) violations.add(violation)
      if ([...violations].some(violation => until?.test(violation))) return violations
    }
  }
  return violations
}

const without = (field: string) => policies.map(policy => ({ ...policy, [field]: undefined }))
const OUTSIDE = /outside the rights/
const isPath = (pattern: RegExp) => (request: Request) => pattern.test(new URL(request.url).pathname)

test('the oracle finds nothing in a witness that applies the policies', async () => {
  expect(await runWith({})).toEqual(new Set())
})

test.each<readonly [bug: string, Bug, RegExp]>([
  ['ignores the slots of a policy', { policies: without('slots') }, OUTSIDE],
  ['ignores the holders of a policy', { policies: without('holders') }, /for the holder of another token/],
  ['ignores the expiry of a policy', { policies: without('expiresAt') }, /for an expired token/],
  ['lets every token write', { policies: policies.map(policy => ({ ...policy, access: 'write' })) }, OUTSIDE],
  [
    'rejects every write',
    { policies: policies.map(policy => ({ ...policy, access: 'read' })) },
    /403 within the rights/,
  ],
  ['does not know the policies', { policies: [] }, /401 for a token/],
  [
    'limits every token',
    { policies: policies.map(policy => ({ ...policy, maxRequestsPerMinute: 5 })) },
    /429 below the request limit/,
  ],
  ['does not check the history', { isUnchecked: isPath(/^\/history\//) }, OUTSIDE],
  ['does not check the list of copies', { isUnchecked: isPath(/^\/leases$/) }, OUTSIDE],
  [
    'does not check a HEAD',
    { isUnchecked: ({ method }) => method === 'HEAD' },
    /outside the rights|for an expired token/,
  ],
  ['does not check a release', { isUnchecked: ({ method }) => method === 'DELETE' }, OUTSIDE],
  ['does not check a slot with an encoded slash', { isUnchecked: isPath(/%2f/i) }, OUTSIDE],
])('the oracle finds a witness that %s', async (_, bug, violation) => {
  expect([...(await runWith(bug, violation))].join('\n')).toMatch(violation)
})
