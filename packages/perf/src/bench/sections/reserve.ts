import { randomUUID } from 'node:crypto'
import { createAllocationRepository } from 'allocation-api/src/allocation/repository.ts'
import { labelOf } from '../labels.ts'
import { localCrew, openHttpCrew, type Subject } from '../load/subject.ts'
import type { Section } from '../section.ts'
import { reserveTask, toEmptyRoute } from './requests.ts'
import { compareWithTargets, POOL, SUBJECTS } from './standard.ts'

/** Of the bare statements, sent one by one. Above 1 only where concurrent requests share a statement. */
const AT_LEAST = 0.7

/** Names that nobody has: every reserve is granted. */
export const reserveSection: Section = {
  name: 'reserve',
  title: 'POST reserve, every name a fresh one',
  on: 'postgres',
  async run(context) {
    const { stage } = context
    // A database each, so that neither meets what the other has left: rows, dead rows, statistics.
    await using viaApi = await stage.database()
    await using direct = await stage.database()
    await using api = await stage.api(viaApi)
    await using empty = await stage.emptyRoute()
    const { reservation, database } = stage.config
    const store = createAllocationRepository(direct.sql, { timeoutMs: database.timeoutMs })
    let names = 0
    const fresh = () => labelOf(names++)

    const request = () => reserveTask(fresh())
    const reserveDirectly = async () => {
      const decision = await store.reserve(
        { poolDomain: POOL, subdomain: fresh(), createdBy: 'bench' },
        reservation.ttlMs,
        { actor: 'in-cluster', address: '127.0.0.1', requestId: randomUUID() },
      )
      return typeof decision === 'object' && decision.kind === 'granted' ? null : 'not granted'
    }
    const subjects: Subject[] = [
      { name: SUBJECTS.api, open: callers => openHttpCrew(api.port, callers, request) },
      { name: SUBJECTS.sql, open: async callers => localCrew(callers, reserveDirectly) },
      { name: SUBJECTS.empty, open: callers => openHttpCrew(empty.port, callers, () => toEmptyRoute(request())) },
    ]
    // Awaited here: what it measures lives to the end of this function.
    return await compareWithTargets('reserve', context, subjects, AT_LEAST)
  },
}
