import { oneOf, openHttpCrew, type Subject } from '../load/subject.ts'
import type { Target } from '../report/target.ts'
import type { Section, SectionContext } from '../section.ts'
import { createBook, createTurns } from './lease-book.ts'
import { type Contention, contentionTable, createTally } from './lease-contention.ts'
import { seed } from './lease-seed.ts'
import {
  compareLeases,
  LEASE_METHOD,
  LEASE_SUBJECTS,
  leaseTarget,
  leaseTargetTable,
  loadTable,
  type Services,
  startWorkers,
} from './lease-standard.ts'

const TARGETS = { oneWriter: 2.5, sixteenOnOneSlot: 3, many: 1.5 }

const granted = oneOf(200)
const decided = oneOf(200, 412)

const COVERS = [
  'On one slot every client writes with the generation that its last answer told it, all in the name of one holder: a',
  '200 renews, a 412 is a client that came too late and is told the new generation. Both are answers and are counted.',
  'That favours KV only, or rather does not hold against it what it does wrong: see how often it granted a generation',
  'that somebody had been granted already. On many slots each client renews its own in turn: every answer is a 200.',
  'Renewals are copied to KV at most once a minute, which is less often than a section lasts: see lease-renewals.',
].join('\n')

/** Sixteen who write one slot, each by what it was told last. */
const measureOne = async (context: SectionContext, services: Services) => {
  const subjects: Subject[] = []
  for (const [worker, { port }] of services) {
    await seed(port, worker, 'put-one', createBook('put-one', 1))
    const tally = createTally()
    subjects.push({
      name: LEASE_SUBJECTS[worker],
      prepare: tally.forget,
      counters: tally.counters,
      open: callers => {
        const books = Array.from({ length: callers }, () => createBook('put-one', 1))
        return openHttpCrew(port, callers, caller => {
          const book = books[caller] ?? createBook('put-one', 1)
          return {
            request: book.write(0),
            faultOf(answer) {
              const generation = book.learn(0, answer)
              const isTwice = answer.status === 200 && tally.grant(generation)
              // To KV only it happens; of the witness it would be the end of everything.
              return isTwice && worker !== 'kv-only' ? 'a generation was granted twice' : decided(answer)
            },
          }
        })
      },
    })
  }
  return compareLeases('lease-put', context, 1, subjects)
}

const measureMany = async (context: SectionContext, services: Services) => {
  const { slots } = context.options
  const subjects: Subject[] = []
  for (const [worker, { port }] of services) {
    const book = createBook('put-many', slots)
    const turn = createTurns(slots)
    await seed(port, worker, 'put-many', book)
    subjects.push({
      name: LEASE_SUBJECTS[worker],
      open: callers =>
        openHttpCrew(port, callers, caller => {
          const slot = turn(caller, callers)
          return {
            request: book.write(slot),
            faultOf(answer) {
              const fault = granted(answer)
              // What a broken answer leaves out is told by the next 412.
              if (answer.status === 200 || answer.status === 412) book.learn(slot, answer)
              return fault
            },
          }
        }),
    })
  }
  return compareLeases('lease-put', context, slots, subjects)
}

export const leasePutSection: Section = {
  name: 'lease-put',
  title: 'PUT of a lease by clients that know its generation',
  on: 'workerd',
  async run(context) {
    await using workers = await startWorkers(context, ['witness', 'memory', 'kv-only'])
    const one = await measureOne(context, workers.services)
    const many = await measureMany(context, workers.services)
    const contention: Contention[] = one.comparisons.map(({ connections, runs }) => ({ clients: connections, runs }))
    const targets: Target[] = [
      ...one.loads.map(load =>
        leaseTarget(load, 'ops/s', load.where.clients === 1 ? TARGETS.oneWriter : TARGETS.sixteenOnOneSlot),
      ),
      ...many.loads.map(load => leaseTarget(load, 'ops/s', TARGETS.many)),
    ]
    const loads = [...one.loads, ...many.loads]
    const grants = contentionTable(Object.values(LEASE_SUBJECTS), contention)
    return {
      notes: [LEASE_METHOD, COVERS],
      tables: [loadTable(loads), grants.table, leaseTargetTable(targets)],
      figures: { loads, oneSlot: grants.figures, targets },
      faults: [...one.faults, ...many.faults],
    }
  },
}
