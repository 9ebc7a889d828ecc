import { left, right, type Table } from '../../shared/table.ts'
import { type Load, type LoadResults, measureLoads, targetCells } from '../load/compare.ts'
import type { Target } from '../load/target.ts'
import { type Goal, goalTable, type Section, toGoal } from '../report.ts'
import { EtcdClient, missingEtcd, startEtcd } from './etcd.ts'
import {
  acquireAll,
  createContendedTarget,
  createGetTarget,
  createRenewTarget,
  LeaseClient,
  type SlotClient,
} from './lease-client.ts'

const METHOD = [
  'Closed loop; medians over the rounds (min–max); ratios round by round, witness / etcd: above 1 for ops/s and below 1 for',
  'latencies the witness is better. witness: one Node process over Postgres with synchronous_commit = on, with its default',
  'settings except the request limit. etcd: one node with its JSON gateway, which a client without gRPC uses; a GET is a',
  'linearizable range of one key, a PUT a transaction that compares mod_revision and reads the key if it differs. Both write',
  'durably to the same disk before they respond, and share the cores with the load generator.',
].join('\n')

/** A system under test, and its requests. */
interface Store {
  readonly name: string
  readonly port: number
  readonly createClient: (name: string, slots: number) => SlotClient
}

interface NamedLoad {
  readonly name: string
  readonly slots: number
  readonly users: number
  readonly createTarget: (store: Store) => Promise<Target>
}

const CLIENTS = 16

const toLoads = (slots: number): readonly NamedLoad[] => {
  const acquired = async ({ port, createClient }: Store, name: string, count: number) => {
    const client = createClient(name, count)
    await acquireAll(port, client)
    return client
  }
  const getTarget = (name: string, count: number) => async (store: Store) =>
    createGetTarget(store.name, store.port, await acquired(store, name, count))
  const renewTarget = (name: string, count: number) => async (store: Store) =>
    createRenewTarget(store.name, store.port, await acquired(store, name, count))
  const manySlots = slots.toLocaleString('en-US')
  return [
    { name: 'GET of 1 slot', slots: 1, users: CLIENTS, createTarget: getTarget('get-one', 1) },
    { name: `GET of ${manySlots} slots`, slots, users: CLIENTS, createTarget: getTarget('get-many', slots) },
    { name: 'renewals of 1 writer', slots: 1, users: 1, createTarget: renewTarget('renew-one', 1) },
    {
      name: `${CLIENTS} writers on 1 slot`,
      slots: 1,
      users: CLIENTS,
      createTarget: async store => {
        const { name, port, createClient } = store
        await acquired(store, 'put-one', 1)
        return createContendedTarget(name, port, () => createClient('put-one', 1))
      },
    },
    {
      name: `${CLIENTS} writers on ${manySlots} slots`,
      slots,
      users: CLIENTS,
      createTarget: renewTarget('put-many', slots),
    },
  ]
}

/** Against the second target, which is etcd. */
export const toEtcdGoals = (name: string, { targets }: Load): readonly Goal[] => {
  const ratio = targets[1]?.ratio ?? null
  return [
    toGoal(name, 'ops/s', 'at least', 1, ratio?.perSecond ?? null),
    toGoal(name, 'p99', 'at most', 1, ratio?.p99 ?? null),
  ]
}

const resultTable = (results: readonly (readonly [name: string, load: Load])[]): Table => ({
  columns: [
    left('load'),
    left('target'),
    ...['ops/s', 'p50 ms', 'p99 ms', 'witness / etcd: ops/s', 'p50', 'p99'].map(right),
  ],
  rows: results.flatMap(([name, { targets }]) =>
    targets.map((figures, index) => [index === 0 ? name : '', ...targetCells(figures)]),
  ),
})

export const leasePostgresSection: Section = {
  name: 'lease-postgres',
  title: 'the witness on Postgres, and etcd',
  needs: 'postgres',
  async run({ environment, options }) {
    if (missingEtcd !== undefined) return { notes: [missingEtcd], tables: [], figures: {}, errors: [] }
    await using stack = new AsyncDisposableStack()
    const witness = stack.use(await environment.startPostgresWitness(await environment.createDatabase()))
    const etcd = stack.use(await startEtcd(environment.folder))
    const stores: readonly Store[] = [
      { name: 'witness', port: witness.port, createClient: (name, count) => new LeaseClient(name, count) },
      { name: 'etcd', port: etcd.port, createClient: (name, count) => new EtcdClient(name, count) },
    ]
    const results: (readonly [name: string, load: Load])[] = []
    const measured: LoadResults[] = []
    for (const { name, users, createTarget, slots: count } of toLoads(options.slots)) {
      const targets: Target[] = []
      for (const store of stores) targets.push(await createTarget(store))
      const plan = { name: `lease-postgres, ${name}`, slots: count, users: [users], timing: options }
      const result = await measureLoads(targets, plan)
      measured.push(result)
      results.push(...result.loads.map(load => [name, load] as const))
    }
    const goals = results.flatMap(([name, load]) => toEtcdGoals(name, load))
    return {
      notes: [METHOD],
      tables: [resultTable(results), goalTable('goal: witness / etcd', goals)],
      figures: { loads: results.map(([name, load]) => ({ name, ...load })), goals },
      errors: measured.flatMap(({ errors }) => errors),
    }
  },
}
