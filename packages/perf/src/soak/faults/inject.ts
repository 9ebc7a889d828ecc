import { setTimeout as sleep } from 'node:timers/promises'
import type { Replica } from '../environment/replica.ts'
import type { SoakEnvironment } from '../environment/stage.ts'
import { editRecords } from './edit-records.ts'
import type { FaultName } from './kinds.ts'
import type { PlannedFault } from './schedule.ts'

/** What it takes to end a fault. */
export interface Effect {
  readonly end: () => Promise<void> | void
  /** Of edited records: whether they are right again. */
  readonly isRepaired?: () => Promise<boolean>
}

type Inflict = (stage: SoakEnvironment, replica: Replica, fault: PlannedFault) => Promise<Effect> | Effect

const SERVICE_UNAVAILABLE = 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
const CUT_EVERY_MS = 300
const MOST_MINUTES_OFF = 10
const MOST_DELAY_MS = 120

const signal = (pid: number | undefined, name: NodeJS.Signals) => {
  // 0 would be our own group.
  if (pid === undefined || pid <= 0) return
  try {
    process.kill(pid, name)
  } catch {
    // It has ended by itself in between.
  }
}

const frozen = (pid: number | undefined): Effect => {
  signal(pid, 'SIGSTOP')
  return { end: () => signal(pid, 'SIGCONT') }
}

const serverOf = ({ zone }: SoakEnvironment) => {
  if (!zone.server) throw new Error('there is no DNS server of its own')
  return zone.server
}

const kinds: Readonly<Record<FaultName, Inflict>> = {
  'replica killed': async (_, { program }) => {
    await program.kill()
    return { end: program.start }
  },
  'replica terminated': async (_, { program }) => {
    await program.terminate()
    return { end: program.start }
  },
  'replica frozen': (_, { program }) => frozen(program.running?.pid),
  'replica frozen for long': (_, { program }) => frozen(program.running?.pid),
  'replica with a wrong clock': (_, { setClock }, { strength }) => {
    setClock(Math.round((2 * strength - 1) * MOST_MINUTES_OFF * 60_000))
    return { end: () => setClock(0) }
  },
  'Postgres crashed': async ({ postgres }) => {
    await postgres.stop('immediate')
    return { end: postgres.start }
  },
  'Postgres hung': ({ postgres }) => {
    postgres.freeze()
    return { end: postgres.thaw }
  },
  'Postgres slow': ({ replicas }, _, { strength }) => {
    for (const { link } of replicas) link.delay(20 + Math.round(strength * MOST_DELAY_MS))
    return {
      end: () => {
        for (const { link } of replicas) link.delay(0)
      },
    }
  },
  'Postgres connections cut': ({ replicas }) => {
    const cut = () => {
      for (const { link } of replicas) link.cutAll()
    }
    cut()
    const timer = setInterval(cut, CUT_EVERY_MS)
    return { end: () => clearInterval(timer) }
  },
  'Postgres silent for one replica': (_, { link }) => {
    link.freeze()
    return { end: link.thaw }
  },
  'Postgres connections abandoned': (_, { link }) => {
    link.abandon()
    return { end: () => {} }
  },
  'DNS provider killed': async stage => {
    const server = serverOf(stage)
    await server.stop()
    return { end: server.start }
  },
  'DNS provider hung': stage => {
    const { link } = serverOf(stage)
    link.freeze()
    return { end: link.thaw }
  },
  'DNS provider slow': (stage, _, { strength }) => {
    const { link } = serverOf(stage)
    link.delay(100 + Math.round(strength * 4 * MOST_DELAY_MS))
    return { end: () => link.delay(0) }
  },
  'DNS provider answers 503': stage => {
    const { link } = serverOf(stage)
    link.answer(SERVICE_UNAVAILABLE)
    return { end: () => link.answer(undefined) }
  },
  'DNS provider cut off': stage => {
    const { link } = serverOf(stage)
    link.refuse(true)
    return { end: () => link.refuse(false) }
  },
  'records edited by hand': async stage => ({ end: () => {}, isRepaired: await editRecords(stage) }),
  'witness killed': async ({ witness }) => {
    await witness.program.kill()
    return { end: witness.program.start }
  },
  'workerd killed': ({ witness }) => {
    signal(witness.workerd(), 'SIGKILL')
    return { end: () => {} }
  },
  'workerd frozen': ({ witness }) => frozen(witness.workerd()),
}

/** Begins it, keeps it up, and ends it; what is told of the times brackets its effect. */
export const inflict = async (
  stage: SoakEnvironment,
  fault: PlannedFault,
  told: { readonly began: () => void; readonly ended: () => void },
): Promise<Effect> => {
  const replica = stage.replicas[fault.replica]
  if (!replica) throw new Error(`there is no replica ${fault.replica}`)
  told.began()
  const effect = await kinds[fault.name](stage, replica, fault)
  try {
    await sleep(fault.holdMs)
  } finally {
    await effect.end()
    told.ended()
  }
  return effect
}
