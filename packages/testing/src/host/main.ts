import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HostAnswer, HostCall, HostMethods, ServiceAddress, ServiceSpec } from '../protocol.ts'
import { type FaultProxy, startFaultProxies } from './fault-proxy.ts'
import type { HostContext, HostedService } from './hosted-service.ts'
import { createLog } from './log.ts'
import { startReaper } from './reaper.ts'

// Runs one service for a test process, which sends calls over the IPC channel. It ends with that channel.

/** The reaper ends what is left after this time. */
const STOP_TIMEOUT_MS = 5_000

/** Alarms of workerd are before the year 2262, also one that a move back has postponed. */
const CLOCK_RANGE = { from: Date.UTC(2000, 0), to: Date.UTC(2200, 0) }

const loadHost = async (spec: ServiceSpec): Promise<(context: HostContext) => Promise<HostedService>> => {
  if (spec.kind === 'allocation-api') {
    const { hostAllocationApi } = await import('./allocation-api.ts')
    return context => hostAllocationApi(spec, context)
  }
  if (spec.on === 'postgres') {
    const { hostWitnessOnPostgres } = await import('./witness.ts')
    return context => hostWitnessOnPostgres(spec, context)
  }
  const { hostWitnessInWorkerd } = await import('./workerd.ts')
  return context => hostWitnessInWorkerd(spec, context)
}

let service: HostedService | undefined
let proxy: FaultProxy | undefined
let folder = ''
let aheadMs = 0
const log = createLog()

const running = () => {
  if (!service || !proxy) throw new Error('the service has not been started')
  return { service, proxy }
}

/** The restarts and moves of the clock, one after the other. */
let lastChange: Promise<unknown> = Promise.resolve()
const inOrder = <Result>(change: () => Promise<Result>): Promise<Result> => {
  const result = lastChange.then(change)
  lastChange = result.catch(() => {})
  return result
}

const killService = (): Promise<void> =>
  inOrder(async () => {
    const { service, proxy } = running()
    proxy.setTargets([])
    proxy.setTargets(await service.kill())
  })

const moveClock = async (ms: number): Promise<void> => {
  const { service } = running()
  if (!Number.isFinite(ms)) throw new RangeError('the clock moves by a finite number of milliseconds')
  if (ms < 0 && !service.canSetBack)
    throw new RangeError('the clock of the allocation API does not go back: pass a positive number of milliseconds')
  await inOrder(async () => {
    const target = Date.now() + aheadMs + ms
    if (target < CLOCK_RANGE.from || target > CLOCK_RANGE.to)
      throw new RangeError('the clock shows a time from the year 2000 to 2200: move it by less')
    await service.setClock(aheadMs + ms)
    aheadMs += ms
  })
}

const start = async (spec: ServiceSpec): Promise<ServiceAddress> => {
  folder = await mkdtemp(join(tmpdir(), 'pool-testing-'))
  const children = startReaper(folder)
  // Postgres can run as another user, who needs to pass through.
  await chmod(folder, 0o711)
  const host = await loadHost(spec)
  process.env.TMPDIR = folder
  service = await host({ folder, log, children })
  proxy = await startFaultProxies(service.ports.length, { killService })
  proxy.setTargets(service.ports)
  const [url = '', operatorUrl] = proxy.ports.map(port => `http://127.0.0.1:${port}`)
  return { url, ...(operatorUrl === undefined ? {} : { operatorUrl }), ...service.address }
}

const methods: HostMethods = {
  start,
  addFault: async spec => running().proxy.addFault(spec),
  awaitFault: fault => running().proxy.awaitFault(fault),
  cancelFault: async fault => running().proxy.cancelFault(fault),
  readClock: async () => Date.now() + aheadMs,
  moveClock,
  kill: killService,
  readLog: async () => log.lines(),
  stop: async () => {},
}

const answer = (message: HostAnswer): void => {
  // The test process can have exited.
  if (process.connected) process.send?.(message, undefined, {}, () => {})
}

const end = async (code: number): Promise<never> => {
  setTimeout(() => process.exit(1), STOP_TIMEOUT_MS).unref()
  proxy?.close()
  await service?.stop().catch(() => {})
  // Otherwise the reaper removes it after this process has ended.
  if (service) await rm(folder, { recursive: true, force: true }).catch(() => {})
  return process.exit(code)
}

process.on('message', ({ id, method, args }: HostCall) => {
  const call: (...args: never[]) => Promise<unknown> = methods[method]
  void call(...(args as never[])).then(
    result => {
      answer({ id, result })
      if (method === 'stop') void end(0)
    },
    async (error: unknown) => {
      const message = error instanceof Error ? error.message : String(error)
      answer({ id, message, isRange: error instanceof RangeError })
      if (method === 'start') void end(1)
    },
  )
})
process.on('disconnect', () => void end(0))
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => void end(0))
