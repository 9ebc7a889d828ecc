import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hardenedEnv } from '@pool/test-kit/hardened.ts'
import { startAllocationApi } from '@pool/testing'
import { expect, test } from 'vitest'
import { AllocationClient, type ClientOptions, ProblemError } from '../src/index.ts'

const page = readFileSync(new URL('../../../docs/clients/in-cluster.md', import.meta.url), 'utf8')
const [, program = ''] = /^```js\n([\s\S]*?)^```$/m.exec(page) ?? []
const AsyncFunction = (async () => {}).constructor as new (...args: string[]) => (...values: unknown[]) => Promise<void>

test('the program of docs/clients/in-cluster.md, interrupted after any step and run again, ends as it should', async () => {
  await using api = await startAllocationApi({ env: hardenedEnv })
  const operator = new AllocationClient({ baseUrl: api.operatorUrl, token: api.operatorToken })
  let isInterrupted = true
  for (let last = 1; isInterrupted; last += 1) {
    isInterrupted = false
    const subdomain = `step-${last}`
    const name = { domain: 'pool.test', subdomain }
    const files = new Map<string, string>()
    let steps = 0

    const run = async (address?: string): Promise<void> => {
      const ended = new AbortController()
      const endAtLast = () => {
        steps += 1
        if (steps !== last) return
        isInterrupted = true
        ended.abort(new Error('ended'))
        ended.signal.throwIfAborted()
      }
      const step = (act: () => void) => {
        ended.signal.throwIfAborted()
        act()
        endAtLast()
      }
      const send: typeof fetch = async (...request) => {
        ended.signal.throwIfAborted()
        const response = await fetch(...request)
        endAtLast()
        return response
      }
      const values = {
        randomUUID,
        existsSync: (file: string) => files.has(file),
        readFileSync: (file: string) => files.get(file),
        writeFileSync: (file: string, text: string) => void files.set(file, text),
        renameSync: (from: string, to: string) => step(() => files.set(to, files.get(from) ?? '')),
        rmSync: (file: string) => step(() => files.delete(file)),
        process: { env: { ALLOCATION_API_URL: api.url }, argv: ['', '', subdomain, ...(address ? [address] : [])] },
        console: { log: () => {} },
        ProblemError,
        AllocationClient: class extends AllocationClient {
          constructor(options: ClientOptions) {
            super({ ...options, retry: { maxAttempts: 1 }, fetch: send })
          }

          override waitUntilPublished(published: typeof name) {
            return super.waitUntilPublished(published, { signal: ended.signal })
          }
        },
      }
      const code = program.replaceAll(/^import .*\n/gm, '')
      await new AsyncFunction(...Object.keys(values), code)(...Object.values(values)).catch(error => {
        if (!ended.signal.aborted) throw error
        return run(address)
      })
    }

    for (const address of ['203.0.113.10', '203.0.113.11']) {
      await run(address)
      expect(await operator.getAllocation(name), subdomain).toMatchObject({ loadBalancerIP: address })
    }
    await run()
    await expect(operator.getAllocation(name), subdomain).rejects.toMatchObject({ status: 404 })
    expect([...files.keys()], subdomain).toEqual([`${subdomain}.json.new`])
    const { entries } = await operator.readHistory({ domain: name.domain, sub: subdomain })
    const events = entries.map(({ event }) => event).filter(event => !['published', 'withdrawn'].includes(event))
    expect(events.toReversed(), subdomain).toEqual(['reserved', 'committed', 'updated', 'released'])
  }
})
