import { setTimeout as sleep } from 'node:timers/promises'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Holding, Verbs } from './operations.ts'
import type { Quiescer } from './pause-gate.ts'

const CONTENDED = 6
const LARGE = 4_000
/** Names that one client has at a time. */
const HELD = 6
const MEAN_REST_MS = 70

const aName = (dice: Prng): string => (dice.chance(0.5) ? `n${dice.below(CONTENDED)}` : `t${dice.below(LARGE)}`)

/** One that looks and takes, uses and gives back, one request at a time, until it is over. */
export const runNameClient = async (number: number, verbs: Verbs, dice: Prng, gate: Quiescer): Promise<void> => {
  let held: readonly Holding[] = []
  let addresses = 0
  const keep = (before: Holding, after: Holding | undefined) => {
    held = held.flatMap(holding => (holding !== before ? [holding] : after ? [after] : []))
  }
  const anAddress = () => {
    addresses += 1
    return `10.${number}.${(addresses >> 8) & 255}.${addresses & 255}`
  }
  const look = () =>
    dice.pickWeighted<() => Promise<void>>([
      [6, () => verbs.get(aName(dice))],
      [4, () => verbs.check(aName(dice))],
      [1, () => verbs.list()],
      [1, () => verbs.history(aName(dice))],
    ])()
  const take = async () => {
    const got = await verbs.reserve(aName(dice))
    if (got) held = [...held, got]
  }
  const use = async (holding: Holding) => {
    const { name, token, address } = holding
    const giveBack = async () => {
      await verbs.release(name, token)
      keep(holding, undefined)
    }
    if (address !== null) return dice.chance(0.4) ? giveBack() : verbs.get(name)
    await dice.pickWeighted<() => Promise<void>>([
      [10, async () => keep(holding, await verbs.commit(holding, anAddress()))],
      [4, async () => keep(holding, await verbs.renew(holding))],
      [2, giveBack],
      // Forgotten: left to expire.
      [3, async () => keep(holding, undefined)],
      [3, () => verbs.get(name)],
    ])()
  }
  const step = async () => {
    const mine = held.length > 0 ? dice.pick(held) : undefined
    if (dice.chance(0.3)) return look()
    // An operator frees names without a token, whoever has them.
    if (dice.chance(0.02)) return verbs.release(aName(dice), null)
    return mine && (held.length >= HELD || dice.chance(0.55)) ? use(mine) : take()
  }
  while (await gate.pass(step)) await sleep(dice.below(2 * MEAN_REST_MS))
}
