import { dirname } from 'node:path'
import { startGateway } from '../../src/ceph/gateway.ts'

/** Starts a gateway in a separate process, which a test can kill. */
const gateway = await startGateway({ names: [] })
process.stdout.write(`${dirname(gateway.caFile)}\n`)
