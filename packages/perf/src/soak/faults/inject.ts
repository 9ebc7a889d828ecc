import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RecordSet, recordKey, sameRecordSet } from 'allocation-api/src/dns/domain/rrset.ts'
import type { InjectedFault } from '../checks/errors-attributable.ts'
import { toDesiredZone } from '../checks/zone.ts'
import { readTable } from '../environment/database.ts'
import { RECORD_TEMPLATE, type SoakEnvironment } from '../environment/environment.ts'
import type { Replica } from '../environment/replica.ts'
import { writeForeignRecords, ZONE } from '../environment/zone.ts'
import type { ActiveFault } from './active-fault.ts'
import { lockRows, lockTables, makeReadOnly, promoteStandby } from './database-faults.ts'
import type { FaultName } from './kinds.ts'
import type { PlannedFault } from './schedule.ts'

type FaultInjector = (
  environment: SoakEnvironment,
  replica: Replica,
  fault: PlannedFault,
) => Promise<ActiveFault> | ActiveFault

const SERVICE_UNAVAILABLE = 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
const RESET_INTERVAL_MS = 300
const MAX_CLOCK_SHIFT_MINUTES = 10
const MAX_DELAY_MS = 120
const EDIT_COUNT = 3
/** More than a replica serves at a time, and fewer sockets than it may have. */
const STALLED_READERS = 120

const signal = (pid: number | undefined, name: NodeJS.Signals) => {
  // 0 would signal our own process group.
  if (pid === undefined || pid <= 0) return
  try {
    process.kill(pid, name)
  } catch {
    // The process has exited in the meantime.
  }
}

const freeze = (pid: number | undefined): ActiveFault => {
  signal(pid, 'SIGSTOP')
  return { end: () => signal(pid, 'SIGCONT') }
}

const getDnsServer = ({ zone }: SoakEnvironment) => {
  if (!zone.server) throw new Error('this fault needs a DNS server; install PowerDNS')
  return zone.server
}

/** Edits records of active names at the provider. Returns whether the service has restored them. */
const editRecords = async ({ sql, zone }: SoakEnvironment): Promise<() => Promise<boolean>> => {
  const records = (await zone.records()).filter(({ type, values }) => type === 'A' && values[0]?.startsWith('10.'))
  const edited: readonly RecordSet[] = records.slice(0, EDIT_COUNT)
  const [removed, ...changed] = edited
  const count = zone.foreignRecords.length
  // The name is one label below the zone, or a wildcard below such a name.
  const toSubdomain = ({ name }: RecordSet) => name.slice(0, -ZONE.length - 1).replace(/^\*\./, '')
  const overwrites = changed.map((set, index) => ({
    subdomain: toSubdomain(set),
    set: { ...set, values: [`198.51.${100 + (((count + index) >> 8) & 127)}.${(count + index) & 255}`] },
    isOverwrite: true,
  }))
  const start = Date.now()
  const first = zone.recordEdits.length
  zone.recordEdits.push(...edited.map(set => ({ name: toSubdomain(set), start, end: Number.POSITIVE_INFINITY })))
  await writeForeignRecords(zone, overwrites, removed ? [removed] : [])
  const end = Date.now()
  edited.forEach((set, index) => {
    zone.recordEdits[first + index] = { name: toSubdomain(set), start, end }
  })
  return async () => {
    // The desired records may have changed in the meantime.
    const desiredZone = toDesiredZone(ZONE, await readTable(sql), RECORD_TEMPLATE, [])
    const desired = new Map(desiredZone.map(set => [recordKey(set), set]))
    const present = new Map((await zone.records()).map(set => [recordKey(set), set]))
    return edited.every(set => {
      const [expected, actual] = [desired.get(recordKey(set)), present.get(recordKey(set))]
      // The replicas have different TTLs.
      return expected && actual ? sameRecordSet({ ...expected, ttl: actual.ttl }, actual) : expected === actual
    })
  }
}

/** Clients that request a history, which is long, and read nothing of it. */
const stallReaders = ({ operatorUrl }: Replica, operatorToken: string): ActiveFault => {
  const sockets = Array.from({ length: STALLED_READERS }, () => {
    const socket = connect(Number(new URL(operatorUrl).port), '127.0.0.1')
    // The service closes the connections, also when it stops.
    socket.on('error', () => {})
    socket.pause()
    socket.write(
      `GET /api/v1/pool/${ZONE}/history HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${operatorToken}\r\n\r\n`,
    )
    return socket
  })
  return {
    end: () => {
      for (const socket of sockets) socket.destroy()
    },
  }
}

const injectors: Readonly<Record<FaultName, FaultInjector>> = {
  'replica killed': async (_, { process }) => {
    await process.kill()
    return { end: () => process.start() }
  },
  'replica terminated': async (_, { process }) => {
    await process.terminate()
    return { end: () => process.start() }
  },
  'replica frozen': (_, { process }) => freeze(process.running?.pid),
  'replica frozen for long': (_, { process }) => freeze(process.running?.pid),
  'replica with a wrong clock': (_, { setClock }, { strength }) => {
    setClock(Math.round((2 * strength - 1) * MAX_CLOCK_SHIFT_MINUTES * 60_000))
    return { end: () => setClock(0) }
  },
  'readers stalled': ({ operatorToken }, replica) => stallReaders(replica, operatorToken),
  'Postgres crashed': async ({ postgres }) => {
    await postgres.stop('immediate')
    return { end: postgres.start }
  },
  'Postgres hung': ({ postgres }) => {
    postgres.freeze()
    return { end: postgres.thaw }
  },
  'Postgres slow': ({ replicas }, _, { strength }) => {
    for (const { link } of replicas) link.delay(20 + Math.round(strength * MAX_DELAY_MS))
    return {
      end: () => {
        for (const { link } of replicas) link.delay(0)
      },
    }
  },
  'Postgres connections cut': ({ replicas }) => {
    const resetAll = () => {
      for (const { link } of replicas) link.resetAll()
    }
    resetAll()
    const timer = setInterval(resetAll, RESET_INTERVAL_MS)
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
  'standby promoted': (environment, _, { strength }) => promoteStandby(environment, strength),
  'Postgres read-only': ({ sql }, _, { strength }) => makeReadOnly(sql, strength),
  'names locked': ({ sql }) => lockRows(sql, 'pool_allocations'),
  'records locked': ({ sql }) => lockRows(sql, 'dns_names'),
  'tables locked': ({ sql }) => lockTables(sql),
  'DNS provider killed': async environment => {
    const server = getDnsServer(environment)
    await server.stop()
    return { end: server.start }
  },
  'DNS provider hung': environment => {
    const { link } = getDnsServer(environment)
    link.freeze()
    return { end: link.thaw }
  },
  'DNS provider slow': (environment, _, { strength }) => {
    const { link } = getDnsServer(environment)
    link.delay(100 + Math.round(strength * 4 * MAX_DELAY_MS))
    return { end: () => link.delay(0) }
  },
  'DNS provider answers 503': environment => {
    const { link } = getDnsServer(environment)
    link.respondWith(SERVICE_UNAVAILABLE)
    return { end: () => link.respondWith(undefined) }
  },
  'DNS provider cut off': environment => {
    const { link } = getDnsServer(environment)
    link.refuse(true)
    return { end: () => link.refuse(false) }
  },
  'records edited by hand': async environment => ({ end: () => {}, isRepaired: await editRecords(environment) }),
  'witness killed': async ({ witness }) => {
    await witness.process.kill()
    return { end: () => witness.process.start() }
  },
  'workerd killed': ({ witness }) => {
    signal(witness.workerd(), 'SIGKILL')
    return { end: () => {} }
  },
  'workerd frozen': ({ witness }) => freeze(witness.workerd()),
}

/** Injects a fault and ends it after its duration. Appends its time span to `injected`: from before its start to after its end. */
export const injectFault = async (
  environment: SoakEnvironment,
  fault: PlannedFault,
  injected: InjectedFault[],
): Promise<ActiveFault> => {
  const replica = environment.replicas[fault.replica]
  if (!replica) throw new Error(`replica ${fault.replica} does not exist`)
  if (fault.name === 'standby promoted') await environment.postgres.rejoin()
  const startedAt = Date.now()
  const index = injected.push({ fault, startedAt, endedAt: Number.POSITIVE_INFINITY }) - 1
  const active = await injectors[fault.name](environment, replica, fault)
  const locks = active.locks && { ...active.locks, start: Date.now(), end: Number.POSITIVE_INFINITY }
  injected[index] = { fault, startedAt, endedAt: Number.POSITIVE_INFINITY, ...(locks && { locks }) }
  try {
    await sleep(fault.durationMs)
  } finally {
    const end = Date.now()
    await active.end()
    injected[index] = { fault, startedAt, endedAt: Date.now(), ...(locks && { locks: { ...locks, end } }) }
  }
  return active
}
