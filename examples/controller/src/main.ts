import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { createIdentity, LeaseClient, LeaseElector } from '@pool/client/leases'
import { log } from './log.ts'
import { PrimaryRegion } from './primary-region.ts'

// A regional controller: one candidate in each region, of which the leader makes its region the primary one.

const { values: options } = parseArgs({
  options: {
    witness: { type: 'string', default: 'http://127.0.0.1:8787' },
    /** Default: the variable WITNESS_TOKEN. */
    'token-file': { type: 'string' },
    slot: { type: 'string', default: 'region-pair/primary' },
    region: { type: 'string', default: 'region-a' },
    resource: { type: 'string', default: 'http://127.0.0.1:9000/primary' },
    'lease-seconds': { type: 'string', default: '30' },
  },
})

const tokenFile = options['token-file']
const leases = new LeaseClient({
  baseUrl: options.witness,
  // Read before each request, so that a rotated token takes effect without a restart.
  token: async () => (tokenFile ? (await readFile(tokenFile, 'utf8')).trim() : (process.env.WITNESS_TOKEN ?? '')),
})
const primary = new PrimaryRegion(options.resource, options.region, process.env.RESOURCE_TOKEN ?? '')
const leaseDuration = Number(options['lease-seconds']) * 1_000
const retryPeriod = leaseDuration / 6

const elector = new LeaseElector({
  leases,
  slot: options.slot,
  identity: createIdentity(options.region),
  leaseDuration,
  // The last third of the lease is for standing down.
  renewDeadline: (leaseDuration * 2) / 3,
  retryPeriod,
  callbacks: {
    onStartedLeading: context => primary.lead(context, retryPeriod),
    onStoppedLeading: reason => log({ msg: 'stopping', reason }),
    onNewLeader: leader => log({ msg: 'leader', leader }),
  },
  onError: error => log({ msg: 'request failed', error: String(error) }),
})

const stop = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort())
// Resolves when the work has stopped and the lease is released.
await elector.run(stop.signal)
