import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createTerraform } from '../../src/deployments/terraform/terraform.ts'
import {
  inspect,
  isTerraformMissing,
  plan,
  startApply,
  startDestroy,
  useSites,
  variables,
} from './support/terraform.ts'

const createTestSite = useSites()

/** An apply waits for a file of its run, and fails if its working directory is gone. */
const waiting = `#!/bin/sh
[ "$1" = state ] && echo '{"version":4,"serial":1,"lineage":"l","resources":[]}'
[ "$1" = apply ] || exit 0
echo '{"@message":"Outputs: 0","type":"outputs","outputs":{}}'
touch at
until [ -e go ]; do sleep 0.02; done
[ -e "$PWD/main.tf.json" ] || { echo 'Error: the directory is gone' >&2; exit 1; }
`

describe('a run that ends late', () => {
  test('leaves the working directory of the next run in place', async () => {
    const site = createTestSite()
    const binary = join(site.folder, 'terraform')
    writeFileSync(binary, waiting)
    chmodSync(binary, 0o755)
    // Two replicas on one machine share a data directory.
    const run = (number: number) => {
      return startApply(
        { ...site.options, binary },
        { run: number, variables: { ...variables, deployment_id: String(number) } },
      )
    }
    const file = (number: number, name: string) => join(site.options.dataDir, 'work', `m1.${number}`, name)
    const at = (number: number) => until(`run ${number} applies`, () => existsSync(file(number, 'at')))
    const release = (number: number) => writeFileSync(file(number, 'go'), '')
    const work = () => readdirSync(join(site.options.dataDir, 'work'))

    const late = run(1)
    await at(1)
    const next = run(2)
    await at(2)
    expect(work()).toEqual(['m1.1', 'm1.2'])
    release(1)
    await late.result
    expect(work()).toEqual(['m1.2'])
    await createTerraform(site.options).cleanUp('m1', 2, () => {})
    release(2)
    expect(await next.result).toEqual({ kind: 'applied', outputs: {} })
    expect(work()).toEqual([])
  })
})

describe.skipIf(isTerraformMissing)('a state', () => {
  test('that its backend rejects is kept, and the log shows where', async () => {
    const site = createTestSite('resource "terraform_data" "machine" { input = 1 }')
    // The state that says that a run begins is accepted, and no later one.
    let stored = Buffer.alloc(0)
    const server = createServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray())
      if (request.method === 'GET') return void response.writeHead(stored.length > 0 ? 200 : 404).end(stored)
      const isFirst = stored.length === 0
      if (isFirst) stored = body
      response.writeHead(isFirst ? 200 : 403).end()
    }).listen(0, '127.0.0.1')
    await until('it listens', () => server.listening)
    const { port } = server.address() as AddressInfo
    const settings = { address: `http://127.0.0.1:${port}/{deployment}`, retry_max: 0 }
    const run = startApply({ ...site.options, backend: { type: 'http', settings } }, { run: 7 })
    expect(await run.result).toEqual({ kind: 'failed', reason: expect.stringContaining('Failed to save state') })
    server.close()
    const file = join('state', 'm1.7.errored.tfstate')
    expect(readFileSync(join(site.options.dataDir, file), 'utf8')).toContain('"name": "machine"')
    expect(run.lines.at(-1)).toMatchObject({ phase: 'end', level: 'error', message: expect.stringContaining(file) })
    expect(readdirSync(join(site.options.dataDir, 'work'))).toEqual([])
    // Nothing starts from the older state, and no state that was not saved counts as empty.
    const rejected = { kind: 'failed', reason: expect.stringContaining(file) }
    expect(await startApply(site.options).result).toEqual(rejected)
    expect(await startDestroy(site.options).result).toEqual(rejected)
    expect(await inspect(site.options)).toEqual(rejected)
    for (const destroy of [false, true]) expect(await plan(site.options, destroy)).toEqual(rejected)
    expect(await startApply(site.options, { id: 'm2' }).result).toMatchObject({ kind: 'applied' })
    // The state of a run whose process died is kept by the next run.
    mkdirSync(join(site.options.dataDir, 'work', 'm1.8'))
    writeFileSync(join(site.options.dataDir, 'work', 'm1.8', 'errored.tfstate'), 'kept')
    const messages: string[] = []
    await createTerraform(site.options).cleanUp('m1', 9, ({ message }) => messages.push(message))
    expect(messages).toEqual([expect.stringContaining(join('state', 'm1.8.errored.tfstate'))])
    expect(readFileSync(join(site.options.dataDir, 'state', 'm1.8.errored.tfstate'), 'utf8')).toBe('kept')
  })

  test('of a name of maximum length has a file', async () => {
    const site = createTestSite()
    const stateKey = `${'a'.repeat(62)}.`.repeat(4).slice(0, 253).replace(/\.$/, 'a')
    expect(await startApply(site.options, { stateKey }).result).toEqual({ kind: 'applied', outputs: {} })
    expect(readdirSync(join(site.options.dataDir, 'state', stateKey))).toContain('terraform.tfstate')
  })
})
