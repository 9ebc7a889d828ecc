import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { startNode } from '@pool/dev/process'
import { until } from '@pool/test-kit/poll.ts'
import { toApiEntry } from '@pool/test-kit/services.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { KnownState } from '../../src/deployments/domain/types.ts'
import { createRemoteProvisioner } from '../../src/deployments/remote-provisioner.ts'
import { LeaseLostError } from '../../src/deployments/run.ts'
import { findProcesses, isTerraformMissing, toRequest, useSites } from './support/terraform.ts'

const createTestSite = useSites()

const waiting = `
  resource "terraform_data" "first" {
    provisioner "local-exec" { command = "echo waiting; exec sleep 1004712" }
  }`

/** The runner of a module as the chart starts it, and the service's end of its socket. */
const startRunner = async (module: string) => {
  const { options, folder } = createTestSite(module)
  const socket = join(folder, 'socket')
  const runner = startNode({
    entry: toApiEntry('terraform-runner'),
    env: {
      PDM_TERRAFORM_RUNNER: socket,
      PDM_TERRAFORM_MODULE: options.moduleDir ?? '',
      PDM_DEPLOYMENTS_DIR: options.dataDir,
    },
  })
  await runner.ready
  onTestFinished(() => void runner.kill())
  const readState = () => readFileSync(join(options.dataDir, 'state/acme.pool.test/terraform.tfstate'), 'utf8')
  return { runner, socket, remote: createRemoteProvisioner(socket, 60_000), readState }
}
const { signal } = new AbortController()

describe.skipIf(isTerraformMissing)('Terraform in another container', () => {
  test('applies, reports and inspects as in the service, and a missing part is named', async () => {
    const { remote, runner } = await startRunner('output "details" { value = var.object_storage_secret_key != "" }')
    expect([await remote.preflight(signal), await remote.moduleVersion(null)]).toEqual([
      null,
      expect.stringContaining('@'),
    ])
    const states: KnownState[] = []
    const lines: object[] = []
    const request = toRequest({ onState: async state => void states.push(state) })
    const applied = await remote.apply(request, line => lines.push(line), signal)
    expect(applied).toEqual({ kind: 'failed', reason: expect.stringContaining('sensitive') })
    expect([states.length, lines.length].every(Boolean)).toBe(true)
    expect(await remote.inspect(request, signal)).toMatchObject({ kind: 'inspected', isEmpty: true })
    expect(await remote.plan({ ...request, run: 0, destroy: false }, signal).catch(String)).toMatch(/positive integer/)
    await runner.stop()
    expect(await remote.preflight(signal)).toMatch(/does not respond .*PDM_TERRAFORM_RUNNER/)
    await expect(remote.apply(request, () => {}, signal)).rejects.toMatchObject({ name: 'ProvisionerFailedError' })
  })

  test('is stopped by the signal of its call, and a lost lease ends the call as in the service', async () => {
    const { remote, readState } = await startRunner(waiting)
    const onState = () => Promise.reject(new LeaseLostError())
    await expect(remote.apply(toRequest({ onState }), () => {}, signal)).rejects.toThrow(LeaseLostError)
    const stopping = new AbortController()
    const onLine = ({ message }: { message: string }) =>
      void (message.endsWith('(local-exec): waiting') && stopping.abort())
    expect(await remote.apply(toRequest(), onLine, stopping.signal)).toEqual({ kind: 'stopped' })
    expect([findProcesses('1004712'), readState()]).toEqual([[], expect.stringContaining('"status": "tainted"')])
  })

  test('is stopped when the service is gone, and its state is saved', async () => {
    const { socket, readState } = await startRunner(waiting)
    const service = connect(socket)
    service.write(`${JSON.stringify({ method: 'apply', args: [toRequest(), { $callback: 0 }, { $signal: 1 }] })}\n`)
    for await (const line of createInterface(service)) if (line.includes('(local-exec): waiting')) break
    expect(findProcesses('1004712').length).toBeGreaterThan(0)
    service.destroy()
    await until('nothing runs', () => findProcesses('1004712').length === 0)
    await until('the state is saved', () => readState().includes('"status": "tainted"'))
  })

  test.each(['{"method":"constructor","args":[]}', '{"method":"apply"}', 'no JSON', '"text"'])(
    'survives %s',
    async text => {
      const { socket, remote } = await startRunner('')
      const other = connect(socket)
      other.end(`${text}\n`)
      await once(other.resume(), 'close')
      expect(await remote.preflight(signal)).toBeNull()
    },
  )
})
