import { setTimeout as sleep } from 'node:timers/promises'
import { listen, readMemoryLimit, toListenError, toServerLimits } from '@pool/runtime/service/http-server'
import { createApp } from '../app.ts'
import type { LeaseDirectory, LeaseService, SlotUnavailable } from '../lease-service.ts'
import { log } from '../log.ts'
import type { Config } from './config.ts'
import { openLeases } from './leases.ts'
import { createMetrics } from './metrics.ts'

export interface Witness {
  readonly port: number
  /** Stops gracefully. Resolves when every connection is closed. */
  stop(): Promise<void>
}

const REQUEST_GRACE_MS = 8_000
/** Of connections and unfinished bodies. All clients may be behind one proxy. */
const CLIENT_SHARE = 0.5

const starting: SlotUnavailable = { kind: 'lease-unavailable', reason: 'the witness has not reached its database' }

/** What the routes use until the database is reached. */
const startingServices: { readonly leases: LeaseService; readonly directory: LeaseDirectory } = {
  leases: {
    read: async () => starting,
    wait: async () => starting,
    write: async () => starting,
    history: async () => starting,
    readMany: async addresses => addresses.map(() => starting),
    checkHealth: async () => false,
  },
  directory: {
    list: async () => {
      const detail = 'The witness is starting and has not reached its database; retry later.'
      return { kind: 'copy-unavailable', reason: starting.kind, detail }
    },
  },
}

/**
 * Starts the witness on Postgres. The listener responds while the witness waits for the database. Rejects if an operator has
 * to correct the configuration or the database.
 */
export const startWitness = async (config: Config): Promise<Witness> => {
  const { port, listenAddress, keepAliveMs, settings } = config
  const { onRequest, toSource } = createMetrics()
  const startingMetrics = toSource({ isReady: async () => false, durability: () => null })
  const startingApp = createApp(settings, { ...startingServices, onRequest, metrics: startingMetrics })
  const server = await listen(startingApp, port, {
    malformedRequestCode: 'invalid-request',
    address: listenAddress,
    limits: toServerLimits(readMemoryLimit(), CLIENT_SHARE),
    probePaths: ['/healthz'],
    keepAliveMs,
  }).catch((error: NodeJS.ErrnoException) => {
    throw toListenError(error, { variable: 'PORT', port, addressVariable: 'WITNESS_LISTEN_ADDRESS' })
  })
  log(settings, 'info', { msg: 'listening', port: server.port })
  const { leases, directory, durability, stop, close } = await openLeases(config).catch(async error => {
    await server.close(REQUEST_GRACE_MS)
    throw error
  })
  let isStopping = false
  const checkHealth = async () => !isStopping && (await leases.checkHealth())
  const metrics = toSource({ isReady: checkHealth, durability })
  server.serve(createApp(settings, { leases: { ...leases, checkHealth }, directory, onRequest, metrics }))
  return {
    port: server.port,
    async stop() {
      isStopping = true
      // The health check is off, and load balancers need time to notice.
      await sleep(config.drainMs)
      await stop()
      await server.close(REQUEST_GRACE_MS)
      await close()
    },
  }
}
