import { setTimeout as sleep } from 'node:timers/promises'
import type { Prng } from '@pool/test-kit/prng.ts'
import { writeForeignRecords, ZONE, type Zone } from '../environment/zone.ts'
import { CONTENDED_NAMES } from './names.ts'
import type { Quiescer } from './quiescer.ts'
import type { Recorder } from './recorder.ts'

const MEAN_PAUSE_MS = 400
const TTL_S = 60
/** Names that were committed recently are probably still active. */
const RECENT_OPERATIONS = 200

/** Types that do not get in the way of the records of a name, each with a prefix of the name and its value. */
const kinds: readonly (readonly [type: string, prefix: string, value: (count: number) => string])[] = [
  ['TXT', '_acme-challenge', count => `"planted ${count}"`],
  ['AAAA', 'v6', count => `2001:db8::${count.toString(16)}`],
  ['CNAME', 'shop', count => `shop-${count}.example.`],
  ['MX', 'mail', count => `10 mail-${count}.example.`],
  ['SRV', '_sip._tcp', count => `1 2 5060 sip-${count}.example.`],
  ['CAA', 'ca', count => `0 issue "ca-${count}.example"`],
  ['A', 'host', count => `198.51.100.${count % 256}`],
]

/** Adds records below names of the pool, as another program with access to the zone does. */
export const runOtherWriter = async (zone: Zone, prng: Prng, recorder: Recorder, quiescer: Quiescer): Promise<void> => {
  let count = 1
  const pickName = () => {
    const recent = recorder.operations.slice(-RECENT_OPERATIONS).filter(({ kind }) => kind === 'commitment')
    return recent.length > 0 && prng.chance(0.6) ? prng.pick(recent).name : `n${prng.below(CONTENDED_NAMES - 1)}`
  }
  const step = async () => {
    count += 1
    const subdomain = pickName()
    const [type, prefix, toValue] = prng.pick(kinds)
    const set = { name: `${prefix}.x${count}.${subdomain}.${ZONE}`, type, ttl: TTL_S, values: [toValue(count)] }
    // The zone may be in a database that is down. The record may have been written.
    await writeForeignRecords(zone, [{ subdomain, set, isOverwrite: false }]).catch(() => {})
  }
  while (await quiescer.run(step)) await sleep(prng.below(2 * MEAN_PAUSE_MS))
}
