import { providers } from '../environment/provider-site.ts'
import { type BurstRun, runBursts } from '../load/bursts.ts'
import type { Section, SectionContext } from '../section.ts'
import { apiSubject, NAMES, oneWriteSubject, openSide } from './provider-subjects.ts'
import { faultsOf, notMeasured, type ProviderLoad, providersTable } from './providers-result.ts'

/** One caller, a busy replica, and more than the pool of connections to the database can carry at a time. */
const CONCURRENT = [1, 16, NAMES]

const METHOD = [
  'Bursts: so many commits begun at once, the next burst when all are answered. A round gives each subject half of its',
  'seconds, and at least one burst. Medians over the rounds (min–max); ratios round by round. A rate counts commits whose',
  'records are out. The zone has 64 names of one record each (a Dynadot domain can have 100). Between bursts, off the',
  'clock, they become reservations again and keep their records; the next commit has another address. So every commit is',
  'one change of one record, and the zone stays as large as it is.',
  'API: a process with its defaults, over HTTP. One write: the same commit statement in this process, without HTTP, claim',
  'and intent, which favours it; then, by the same provider code, a read, a plan and a write for this commit alone, and',
  'the result to the database; one commit after another, as there is nothing to keep two writes of a zone apart. Of a',
  'burst that outlasts its seconds those not begun are given up and not counted: it has no latencies to compare.',
].join('\n')

const CALLS = [
  'Doubles of cloudflare and dynadot take 50 ms and 300 ms for each call, about what the real ones take; calls are HTTP',
  'requests that they were sent. powerdns and rfc2136 are real servers (PowerDNS, BIND) on this machine, without delay;',
  'their calls are reads and writes of the provider port. A one-write implementation that does not compare before it',
  'writes would make 2 calls at dynadot in place of 3: the ratios there would be two thirds of those below.',
].join('\n')

/** Both sides with a database and a provider of their own, in turn, round after round. */
const measure = async (
  context: SectionContext,
  { name, delayMs }: (typeof providers)[number],
): Promise<ProviderLoad[]> => {
  const { rounds } = context.options
  const seconds = context.options.seconds / 2
  const say = (line: string) => context.say(`providers: ${name}: ${line}`)
  say('warming up')
  await using cleanup = new AsyncDisposableStack()
  const [api, oneWrite] = await Promise.all([
    openSide(context, name, cleanup).then(side => apiSubject(context, side, cleanup)),
    openSide(context, name, cleanup).then(side => oneWriteSubject(context, side, cleanup)),
  ])
  // The first burst of all brings every name into the zone.
  await runBursts(api, NAMES, seconds)

  const loads: ProviderLoad[] = []
  for (const concurrent of CONCURRENT) {
    const runs = { api: [] as BurstRun[], oneWrite: [] as BurstRun[] }
    for (let round = 1; round <= rounds; round += 1) {
      say(`${concurrent} concurrent, round ${round} of ${rounds}`)
      runs.api.push(await runBursts(api, concurrent, seconds))
      runs.oneWrite.push(await runBursts(oneWrite, concurrent, seconds))
    }
    loads.push({ provider: name, delayMs, concurrent, runs })
  }
  return loads
}

export const providersSection: Section = {
  name: 'providers',
  title: 'POST commit at each DNS provider, in shared passes and one write a commit',
  on: 'postgres',
  async run(context) {
    const loads: ProviderLoad[] = []
    for (const provider of providers) if (!provider.lacks) loads.push(...(await measure(context, provider)))
    const late = loads.flatMap(({ runs }) => runs.api).reduce((sum, run) => sum + run.late, 0)
    const lateNote = `Answered 202, because the provider took longer than the API waits: ${late}.`
    const { table, figures } = providersTable(loads)
    return {
      notes: [METHOD, CALLS, [...notMeasured(providers), lateNote].join('\n')],
      tables: [table],
      figures: { loads: figures, answered202: late },
      faults: faultsOf(loads),
    }
  },
}
