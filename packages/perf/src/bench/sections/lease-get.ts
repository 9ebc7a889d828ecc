import type { Answer } from '../load/answer.ts'
import { oneOf, openHttpCrew, type Subject } from '../load/subject.ts'
import type { Target } from '../report/target.ts'
import type { Section, SectionContext } from '../section.ts'
import { type Book, createBook, createTurns } from './lease-book.ts'
import { seed } from './lease-seed.ts'
import {
  compareLeases,
  LEASE_METHOD,
  LEASE_SUBJECTS,
  type LeaseLoad,
  leaseTarget,
  leaseTargetTable,
  loadTable,
  type Services,
  startWorkers,
} from './lease-standard.ts'

const TARGETS = { one: 1.7, many: 1.5 }

const answered = oneOf(200)

/** The status and the generation: what it is read for. */
const tells =
  (book: Book, slot: number) =>
  (answer: Answer): string | null =>
    answered(answer) ??
    (answer.body.endsWith(`"generation":${book.generation(slot)}}`) ? null : `another lease: ${answer.body}`)

const measure = async (context: SectionContext, services: Services, slots: number) => {
  const name = `get-of-${slots}`
  const subjects: Subject[] = []
  for (const [worker, { port }] of services) {
    const book = createBook(name, slots)
    const turn = createTurns(slots)
    await seed(port, worker, name, book)
    subjects.push({
      name: LEASE_SUBJECTS[worker],
      open: callers =>
        openHttpCrew(port, callers, caller => {
          // On one slot everybody reads the same one.
          const slot = slots === 1 ? 0 : turn(caller, callers)
          return { request: book.read(slot), faultOf: tells(book, slot) }
        }),
    })
  }
  return compareLeases('lease-get', context, slots, subjects)
}

export const leaseGetSection: Section = {
  name: 'lease-get',
  title: 'GET of a lease',
  on: 'workerd',
  async run(context) {
    await using workers = await startWorkers(context, ['witness', 'memory', 'kv-only'])
    const loads: LeaseLoad[] = []
    const targets: Target[] = []
    const faults: string[] = []
    for (const [slots, target] of [
      [1, TARGETS.one],
      [context.options.slots, TARGETS.many],
    ] as const) {
      const measured = await measure(context, workers.services, slots)
      loads.push(...measured.loads)
      faults.push(...measured.faults)
      targets.push(...measured.loads.map(load => leaseTarget(load, 'ops/s', target)))
    }
    return {
      notes: [LEASE_METHOD],
      tables: [loadTable(loads), leaseTargetTable(targets)],
      figures: { loads, targets },
      faults,
    }
  },
}
