import { dirname } from 'node:path'
import { startGateway } from '../src/gateway.ts'

/** A gateway in a process of its own, so that this can be killed. */
const gateway = await startGateway({ names: [] })
process.stdout.write(`${dirname(gateway.caFile)}\n`)
