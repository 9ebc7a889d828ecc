import { setTimeout as sleep } from 'node:timers/promises'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Holding, PoolOperations } from './operations.ts'
import type { Quiescer } from './quiescer.ts'

/** The last one is above a pool: no client gets it. */
export const CONTENDED_NAMES = 6
const OTHER_NAMES = 4_000
/** Reservations that one client has at a time. */
const MAX_HELD = 6
const MEAN_PAUSE_MS = 70

const pickName = (prng: Prng): string =>
  prng.chance(0.5) ? `n${prng.below(CONTENDED_NAMES)}` : `t${prng.below(OTHER_NAMES)}`

/** Reserves, reads, commits, updates, renews, releases and takes back names, one request at a time, until the run ends. */
export const runNameClient = async (
  number: number,
  operations: PoolOperations,
  prng: Prng,
  quiescer: Quiescer,
): Promise<void> => {
  let held: readonly Holding[] = []
  let addresses = 0
  const replaceHolding = (before: Holding, after: Holding | undefined) => {
    held = held.flatMap(holding => (holding !== before ? [holding] : after ? [after] : []))
  }
  const createAddress = () => {
    addresses += 1
    return `10.${number}.${(addresses >> 8) & 255}.${addresses & 255}`
  }
  const readSome = () =>
    prng.pickWeighted<() => Promise<void>>([
      [6, () => operations.get(pickName(prng))],
      [4, () => operations.check(pickName(prng))],
      [1, () => operations.list()],
      [1, () => operations.history(pickName(prng))],
    ])()
  const reserveOne = async () => {
    const reserved = await operations.reserve(pickName(prng))
    if (reserved) held = [...held, reserved]
  }
  const useHolding = async (holding: Holding) => {
    const { name, token, address } = holding
    const release = async () => {
      await operations.release(name, token)
      replaceHolding(holding, undefined)
    }
    const releaseAndTakeBack = async () => {
      await operations.release(name, token)
      replaceHolding(holding, await operations.takeBack(holding))
    }
    const releaseAndLiftCoolOff = async () => {
      await release()
      await operations.liftCoolOff(name)
    }
    if (address !== null)
      return prng.pickWeighted<() => Promise<void>>([
        [6, release],
        [2, releaseAndTakeBack],
        [1, releaseAndLiftCoolOff],
        [4, async () => replaceHolding(holding, await operations.update(holding, createAddress()))],
        [8, () => operations.get(name)],
      ])()
    await prng.pickWeighted<() => Promise<void>>([
      [10, async () => replaceHolding(holding, await operations.commit(holding, createAddress()))],
      [4, async () => replaceHolding(holding, await operations.renew(holding))],
      [2, release],
      // Lets the reservation expire.
      [3, async () => replaceHolding(holding, undefined)],
      [3, () => operations.get(name)],
    ])()
  }
  const step = async () => {
    const holding = held.length > 0 ? prng.pick(held) : undefined
    if (prng.chance(0.3)) return readSome()
    // As an operator, who needs no token.
    if (prng.chance(0.02)) return operations.release(pickName(prng), null)
    if (prng.chance(0.002)) return operations.republish()
    return holding && (held.length >= MAX_HELD || prng.chance(0.55)) ? useHolding(holding) : reserveOne()
  }
  while (await quiescer.run(step)) await sleep(prng.below(2 * MEAN_PAUSE_MS))
}
