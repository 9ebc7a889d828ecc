import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { createTerraform } from '../../src/deployments/terraform/terraform.ts'
import { lacksTerraform, startApply, useSites, variables } from './support/terraform.ts'

const site = useSites()

/** Every apply waits for a file of its run; without its own folder it fails. */
const waiting = `#!/bin/sh
[ "$1" = apply ] || exit 0
touch "$TMPDIR/at-$TF_VAR_deployment_id"
until [ -e "$TMPDIR/go-$TF_VAR_deployment_id" ]; do sleep 0.02; done
[ -e "$PWD/main.tf.json" ] || { echo 'Error: the folder is gone' >&2; exit 1; }
`

describe('a run that ends late', () => {
  test('leaves the next one its folder, which is cleared neither by it nor by the next one itself', async () => {
    const here = site()
    const binary = join(here.folder, 'terraform')
    writeFileSync(binary, waiting)
    chmodSync(binary, 0o755)
    // Two replicas on one machine, with one folder.
    const run = (number: number) => {
      const options = { ...here.options, binary, env: { ...here.options.env, TMPDIR: here.folder } }
      return startApply(options, { run: number, variables: { ...variables, deployment_id: String(number) } })
    }
    const at = (number: number) => until(`run ${number} applies`, () => existsSync(join(here.folder, `at-${number}`)))
    const letGo = (number: number) => writeFileSync(join(here.folder, `go-${number}`), '')
    const work = () => readdirSync(join(here.options.dataDir, 'work'))

    const late = run(1)
    await at(1)
    const next = run(2)
    await at(2)
    expect(work()).toEqual(['m1.1', 'm1.2'])
    letGo(1)
    await late.result
    expect(work()).toEqual(['m1.2'])
    await createTerraform(here.options).cleanUp('m1', 2, () => {})
    letGo(2)
    expect(await next.result).toEqual({ kind: 'applied', outputs: {} })
    expect(work()).toEqual([])
  })
})

describe.skipIf(lacksTerraform)('a state', () => {
  test('that its backend does not take is kept, and the log says where', async () => {
    const here = site('resource "terraform_data" "machine" { input = 1 }')
    const server = createServer((request, response) => {
      request.resume()
      response.writeHead(request.method === 'GET' ? 404 : 403).end()
    }).listen(0, '127.0.0.1')
    await until('it listens', () => server.listening)
    const { port } = server.address() as AddressInfo
    const settings = { address: `http://127.0.0.1:${port}/{deployment}`, retry_max: 0 }
    const run = startApply({ ...here.options, backend: { type: 'http', settings } }, { run: 7 })
    expect(await run.result).toEqual({ kind: 'failed', reason: expect.stringContaining('Failed to save state') })
    server.close()
    const file = join('state', 'm1.7.errored.tfstate')
    expect(readFileSync(join(here.options.dataDir, file), 'utf8')).toContain('"name": "machine"')
    expect(run.lines.at(-1)).toMatchObject({ phase: 'end', level: 'error', message: expect.stringContaining(file) })
    expect(readdirSync(join(here.options.dataDir, 'work'))).toEqual([])
    // Of a run whose process died, by whoever takes it up.
    mkdirSync(join(here.options.dataDir, 'work', 'm1.8'))
    writeFileSync(join(here.options.dataDir, 'work', 'm1.8', 'errored.tfstate'), 'kept')
    const told: string[] = []
    await createTerraform(here.options).cleanUp('m1', 9, ({ message }) => told.push(message))
    expect(told).toEqual([expect.stringContaining(join('state', 'm1.8.errored.tfstate'))])
    expect(readFileSync(join(here.options.dataDir, 'state', 'm1.8.errored.tfstate'), 'utf8')).toBe('kept')
  })

  test('of a name as long as a name can be has a file', async () => {
    const here = site()
    const stateKey = `${'a'.repeat(62)}.`.repeat(4).slice(0, 253).replace(/\.$/, 'a')
    expect(await startApply(here.options, { stateKey }).result).toEqual({ kind: 'applied', outputs: {} })
    const [first = '', second] = [stateKey.slice(0, 200), `${stateKey.slice(200)}.tfstate`]
    expect(readdirSync(join(here.options.dataDir, 'state', first))).toContain(second)
  })
})
