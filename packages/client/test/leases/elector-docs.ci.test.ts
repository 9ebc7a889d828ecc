import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { until } from '@pool/test-kit/poll.ts'
import { expect, test } from 'vitest'
import * as client from '../../src/leases/index.ts'
import { startWitness } from './support/witness.ts'

const page = readFileSync(new URL('../../../../docs/clients/elector.md', import.meta.url), 'utf8')
const snippets = Array.from(page.matchAll(/^```ts\n([\s\S]*?)^```$/gm), ([, code = '']) => stripTypeScriptTypes(code))

const AsyncFunction = (async () => {}).constructor as new (
  ...args: string[]
) => (...values: unknown[]) => Promise<unknown>

/** Runs a snippet with these values for its free names. Returns the variables of the snippet. */
const run = (code: string, values: Readonly<Record<string, unknown>>): Promise<unknown> => {
  const variables = Array.from(code.matchAll(/^const (\w+) =/gm), ([, name = '']) => name)
  const body = code.replace(/^import (\{[^}]+\}) from '@pool\/client\/leases'$/m, 'const $1 = client')
  const create = new AsyncFunction('client', ...Object.keys(values), `${body}\nreturn { ${variables} }`)
  return create(client, ...Object.values(values))
}

test('the snippets of docs/clients/elector.md run against the witness', async () => {
  await using witness = await startWitness()
  const url = `http://127.0.0.1:${witness.port}`
  const [elect = '', work = '', fence = '', batch = '', ...rest] = snippets
  expect(rest).toEqual([])

  const events: string[] = []
  let stop = () => {}
  const electing = run(elect.replace('https://witness.example', url), {
    readToken: () => witness.token,
    promote: async (token: number, region: string) => {
      events.push(`promote ${region} with ${token}`)
      if (token === 1) throw new Error('the write failed')
    },
    setTimeout: (resolve: () => void) => resolve(),
    reconcile: () => new Promise(resolve => setTimeout(resolve, 5)),
    log: (what: string) => void events.push(what),
    process: {
      once: (_: string, listener: () => void) => {
        stop = listener
      },
    },
  })
  await until('the leader has written', () => events.includes('promote region-a with 3'))
  stop()
  await electing
  const failed = ['the leader is', 'promote region-a with 1', 'stopped leading', 'the work failed']
  expect(events).toEqual([...failed, 'promote region-a with 3', 'stopped leading'])

  const leases = new client.LeaseClient({ baseUrl: url, token: witness.token })
  const { createIdentity, withLease, LeaseElector, RenewalBatch } = client
  let reported = 0
  const report = async ({ fencingToken }: { fencingToken: number }) => {
    reported = fencingToken
  }
  await run(work, { withLease, createIdentity, leases, report })
  expect(reported).toBe(1)

  const late = run(`let primary\n${fence}`, { guard: client.guard })
  await expect(late).rejects.toThrow(client.StaleFencingTokenError)

  const identity = createIdentity('region-a')
  const tenures: string[] = []
  const callbacks = {
    onStartedLeading: ({ slot }: { slot: string }) => void tenures.push(slot),
    onStoppedLeading: () => {},
  }
  const slots = ['a', 'b', 'c']
  const { electors } = (await run(batch, { RenewalBatch, LeaseElector, leases, identity, slots, callbacks })) as {
    electors: client.LeaseElector[]
  }
  const end = new AbortController()
  const runs = Promise.all(electors.map(elector => elector.run(end.signal)))
  await until('every elector leads', () => tenures.length === slots.length)
  end.abort()
  await runs
  expect(tenures.toSorted()).toEqual(slots)
})
