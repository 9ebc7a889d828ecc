import { findWorkerd } from '@pool/test-kit/processes.ts'
import type { Service } from '../environment/environment.ts'
import type { Target } from '../load/target.ts'
import { type Load, loadSection, type Section, type Side } from '../section.ts'
import { EtcdClient, missingEtcd, startEtcd } from './etcd.ts'
import {
  acquireAll,
  createContendedTarget,
  createGetTarget,
  createRenewTarget,
  LeaseClient,
  type SlotClient,
  waitForCopies,
} from './lease-client.ts'

const METHOD = [
  'Closed loop. Medians over the rounds (min–max); ratios are geometric means over the rounds, with their 95 % interval. The',
  'witness has its default settings without the request limit, and logs a line per request. One writer renews; writers on one',
  'slot have the same holder and write with the generation in their last response, so a 412 is a write that lost the race, and',
  'counts as a response; on many slots each renews its own.',
]

const WORKERD_NOTE = [
  ...METHOD,
  'CPU: of workerd, which does the work. The first writes of the slots and their copies to KV end before anything is timed.',
].join('\n')

const POSTGRES_NOTE = [
  ...METHOD,
  'witness: one Node process over Postgres with synchronous_commit = on. etcd: one node with its JSON gateway, which a client',
  'without gRPC uses; a GET is a linearizable range of one key, a PUT a transaction that compares mod_revision and reads the key',
  'if it differs. Both write durably to the same disk before they respond, and share the cores with the load generator.',
  ...(missingEtcd === undefined ? [] : [missingEtcd]),
].join('\n')

const CLIENTS = 16

/** A started store, and its requests. */
interface Store {
  readonly port: number
  /** Absent: its costs are unknown. */
  readonly pid?: number
  readonly createClient: (name: string, slots: number) => SlotClient
  /** Resolves when nothing remains to be done for the first writes. */
  readonly settle: (client: SlotClient) => Promise<void>
}

type StartStore = (side: Side) => Promise<Store>

interface Row {
  readonly name: string
  readonly slots: number
  readonly users: number
  readonly create: (name: string, store: Store, client: SlotClient) => Target
}

const toRows = (slots: number): readonly Row[] => {
  const many = `${slots.toLocaleString('en-US')} slots`
  const read: Row['create'] = (name, { port }, client) => createGetTarget(name, port, client)
  const renew: Row['create'] = (name, { port }, client) => createRenewTarget(name, port, client)
  return [
    { name: 'GET of 1 slot', slots: 1, users: CLIENTS, create: read },
    { name: `GET of ${many}`, slots, users: CLIENTS, create: read },
    { name: 'renewals of 1 writer', slots: 1, users: 1, create: renew },
    {
      name: `${CLIENTS} writers on 1 slot`,
      slots: 1,
      users: CLIENTS,
      create: (name, { port, createClient }) => createContendedTarget(name, port, () => createClient(SLOT, 1)),
    },
    { name: `${CLIENTS} writers on ${many}`, slots, users: CLIENTS, create: renew },
  ]
}

/** The beginning of the names of the slots. Each load has a store of its own. */
const SLOT = 'bench'

const createTarget = async (name: string, store: Store, { slots, create }: Row): Promise<Target> => {
  const client = store.createClient(SLOT, slots)
  await acquireAll(store.port, client)
  await store.settle(client)
  return { ...create(name, store, client), ...(store.pid === undefined ? {} : { pid: store.pid }) }
}

const toLoads = (slots: number, start: StartStore, baselines: Readonly<Record<string, StartStore>> = {}) =>
  toRows(slots).map(
    (row): Load => ({
      name: row.name,
      users: [row.users],
      createTarget: async side => createTarget(side.name, await start(side), row),
      createBaselines: side =>
        Promise.all(
          Object.entries(baselines).map(async ([name, startBaseline]) =>
            createTarget(name, await startBaseline(side), row),
          ),
        ),
    }),
  )

const toWitness = ({ port }: Service, pid: number | undefined): Store => ({
  port,
  ...(pid === undefined ? {} : { pid }),
  createClient: (name, slots) => new LeaseClient(name, slots),
  settle: client => waitForCopies(port, client),
})

const startWorkerd: StartStore = async ({ environment, stack, checkout }) => {
  const service = stack.use(await environment.startWorkerdWitness(checkout))
  return toWitness(service, findWorkerd(service.pid))
}

const startPostgres: StartStore = async ({ environment, stack, checkout }) => {
  const service = stack.use(await environment.startPostgresWitness(checkout))
  return toWitness(service, service.pid)
}

const startEtcdStore: StartStore = async ({ environment, stack }) => ({
  port: stack.use(await startEtcd(environment.folder)).port,
  createClient: (name, slots) => new EtcdClient(name, slots),
  settle: async () => {},
})

export const leaseSections: readonly Section[] = [
  loadSection({
    name: 'lease-workerd',
    title: 'GET and PUT of a lease, the witness in workerd',
    note: WORKERD_NOTE,
    comparesWith: 'checkout',
    target: 'witness',
    loads: ({ slots }) => toLoads(slots, startWorkerd),
  }),
  loadSection({
    name: 'lease-postgres',
    title: 'GET and PUT of a lease, the witness on Postgres and etcd',
    note: POSTGRES_NOTE,
    comparesWith: 'checkout',
    target: 'witness',
    loads: ({ slots }) =>
      toLoads(slots, startPostgres, missingEtcd === undefined ? { etcd: startEtcdStore } : undefined),
  }),
]
