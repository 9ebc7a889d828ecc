import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Target } from '@pool/contract'
import { until } from '@pool/test-kit/poll.ts'
import { reportProof } from '@pool/test-kit/proof-size.ts'
import { DNSSEC_OK, decode, encode, type Packet } from 'dns-packet'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import { createRecords } from '../../../src/dns/domain/target.ts'
import type { DnsProvider } from '../../../src/dns/provider.ts'
import { indexRecords, planName, toWantedRecords } from '../../../src/reconciler/domain/plan.ts'

export interface TargetSubject extends AsyncDisposable {
  readonly provider: DnsProvider
  readonly zone: string
  /** Removes a record set as another client. */
  readonly remove: (name: string, type: string) => Promise<void>
  /** Of the server that answers for the zone on 127.0.0.1; null: none does. */
  readonly dnsPort: number | null
  /** Each answer must have its signature. */
  readonly isSigned?: boolean
  /**
   * Where an answer can be neither the old nor the new one: `hostname`: a CNAME takes the place of other records in two steps;
   * `delegation`: the server looks for a delegation, then for records, in two reads; `every`: it composes any answer of several.
   */
  readonly gaps?: 'hostname' | 'delegation' | 'every'
}

const NAMESERVERS = ['ns1.cloud.example', 'ns2.cloud.example']
export const FORMS = {
  ipv4: { loadBalancerIP: '192.0.2.1' },
  addresses: { loadBalancerIP: '192.0.2.2', loadBalancerIPv6: '2001:db8::2', consoleLoadBalancerIP: '192.0.2.3' },
  hostname: { loadBalancerHostname: 'lb.cloud.example' },
  delegation: {
    nameservers: NAMESERVERS,
    ds: [{ keyTag: 12_345, algorithm: 13, digestType: 2, digest: 'AB'.repeat(32) }],
  },
} as const satisfies Record<string, Target>

/** Each change of one form to another, once. */
const WALK: readonly (keyof typeof FORMS)[] = [
  ...(['ipv4', 'addresses', 'ipv4', 'hostname', 'ipv4', 'delegation', 'addresses', 'hostname'] as const),
  ...(['addresses', 'delegation', 'hostname', 'delegation', 'ipv4'] as const),
]

const signal = () => AbortSignal.timeout(120_000)

const OPT_DNSSEC_OK = {
  type: 'OPT',
  name: '.',
  udpPayloadSize: 4_096,
  flags: DNSSEC_OK,
} as NonNullable<Packet['additionals']>[number]

/** What a server answers for the names of a target now. It has one query in flight. */
const startResolver = async (port: number, zone: string, isSigned = false) => {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const query = async (name: string): Promise<string> => {
    for (;;) {
      const id = randomInt(65_536)
      const response = once(socket, 'message', { signal: AbortSignal.timeout(2_000) }).catch(() => [])
      const additionals = isSigned ? [OPT_DNSSEC_OK] : []
      socket.send(encode({ type: 'query', id, questions: [{ type: 'A', name }], additionals }), port, '127.0.0.1')
      const [octets] = await response
      const message = octets ? decode(octets as Buffer) : undefined
      if (message?.id !== id) continue
      const sections = message.answers?.length ? message.answers : (message.authorities ?? [])
      const records = sections.filter(({ type }) => !['SOA', 'RRSIG', 'NSEC', 'NSEC3'].includes(type))
      const shown = records.map(answer => `${answer.type} ${'data' in answer ? JSON.stringify(answer.data) : ''}`)
      const rcode = 'rcode' in message ? message.rcode : ''
      const hasSignature = !isSigned || !message.answers?.length || sections.some(({ type }) => type === 'RRSIG')
      return `${name}: ${rcode} ${shown.sort()}${hasSignature ? '' : UNSIGNED}`
    }
  }
  return {
    async ask() {
      const answers: string[] = []
      for (const name of [`acme.${zone}`, `console.acme.${zone}`, `any.acme.${zone}`]) answers.push(await query(name))
      return answers
    },
    [Symbol.dispose]: () => void socket.close(),
  }
}

const UNSIGNED = ' without a signature'

/** Queries without a pause until it is stopped. Returns the milliseconds from the first to the last time of each answer. */
const watch = (ask: () => Promise<string[]>) => {
  const seen = new Map<string, { readonly first: number; last: number }>()
  let isStopping = false
  const watching = (async () => {
    while (!isStopping) {
      for (const answer of await ask()) {
        const at = performance.now()
        const known = seen.get(answer)
        if (known) known.last = at
        else seen.set(answer, { first: at, last: at })
      }
    }
  })()
  return async () => {
    isStopping = true
    await watching
    return new Map(Array.from(seen, ([answer, { first, last }]) => [answer, last - first]))
  }
}

/** The forms of a target on a real provider, as the service brings a name from one to another. */
export const describeTargets = (kind: string, start: () => Promise<TargetSubject>): void => {
  describe(`targets: ${kind}`, () => {
    let subject: TargetSubject
    let owned: { readonly name: string; readonly type: string }[] = []
    beforeAll(async () => {
      subject = await start()
    })
    afterAll(async () => {
      await subject?.provider.close()
      await subject?.[Symbol.asyncDispose]()
    })

    /** Returns the number of changes. */
    const bring = async (desired: readonly RecordSet[], isPurged = false): Promise<number> => {
      const { provider, zone } = subject
      const name = { subdomain: 'acme', desired, owned, previous: [], hasInFlightWrite: false, isPurged }
      const read = await provider.read(zone, toWantedRecords(zone, [name]), signal())
      if (read.kind !== 'read') throw new Error(read.reason)
      const options = { zone, zones: [zone], hasZoneTtl: provider.hasZoneTtl === true }
      const plan = planName(indexRecords(zone, read), name, options)
      if (plan.kind === 'conflict') throw new Error(plan.reason)
      const applied = await provider.apply(zone, plan.changes, signal())
      expect(applied).toEqual({ kind: 'applied', rejected: [] })
      owned = desired.map(({ name: owner, type }) => ({ name: owner, type }))
      return plan.changes.length
    }
    const readBranch = async (): Promise<string[]> => {
      const read = await subject.provider.read(
        subject.zone,
        { names: [], branches: [`acme.${subject.zone}`] },
        signal(),
      )
      if (read.kind !== 'read') throw new Error(read.reason)
      const isOwn = ({ type, name }: RecordSet) => name.includes('acme') && !/^(RRSIG|NSEC3?)$/.test(type)
      return read.records.filter(isOwn).map(recordKey).sort()
    }

    test.each([
      ['with the wildcard', ['@', '*', 'console']],
      ['without the wildcard', ['@', 'console', 'api']],
    ])(
      'each change of form %s: the old or the new answer at every moment, no drift, and a release',
      async (_, names) => {
        const { zone, dnsPort } = subject
        const toRecords = (form: keyof typeof FORMS) => createRecords(`acme.${zone}`, FORMS[form], { names, ttl: 300 })
        using resolver = dnsPort === null ? null : await startResolver(dnsPort, zone, subject.isSigned)
        using watcher = dnsPort === null ? null : await startResolver(dnsPort, zone, subject.isSigned)
        await bring(toRecords('ipv4'))
        const isSigned = async () => !`${await resolver?.ask()}`.includes(UNSIGNED)
        await until('the answers are signed', isSigned)
        let gapMs = 0
        for (const [i, form] of WALK.entries()) {
          if (i === 0) continue
          const desired = toRecords(form)
          const before = (await resolver?.ask()) ?? []
          const stopWatching = watcher ? watch(watcher.ask) : async () => new Map<string, number>()
          expect(await bring(desired), `${WALK[i - 1]} to ${form}`).toBeGreaterThan(0)
          // A server may answer with the former state for a moment.
          if (resolver) await until('the new answers', async () => `${await resolver.ask()}` !== `${before}`)
          const seen = await stopWatching()
          const allowed = new Set([...before, ...((await resolver?.ask()) ?? [])])
          expect(await isSigned()).toBe(true)
          const gaps = Array.from(seen.keys()).filter(answer => !allowed.has(answer))
          for (const answer of gaps) gapMs = Math.max(gapMs, seen.get(answer) ?? 0)
          if (subject.gaps !== 'every' && subject.gaps !== form) expect(gaps, `${WALK[i - 1]} to ${form}`).toEqual([])
          expect(await readBranch()).toEqual(desired.map(recordKey).sort())
          expect(await bring(desired), `drift of ${form}`).toBe(0)
          const [first] = desired
          if (first) await subject.remove(first.name, first.type)
          expect(await bring(desired), `repair of ${form}`).toBeGreaterThan(0)
        }
        if (subject.gaps) reportProof(`${kind}: without an answer for ${gapMs.toFixed(1)} ms at most`)
        await bring([], true)
        expect(await readBranch()).toEqual([])
      },
    )
  })
}
