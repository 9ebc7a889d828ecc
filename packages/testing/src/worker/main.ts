// The worker for tests: that of the witness, with a clock that can be moved.

import worker, { LeaseObject as LeaseObjectOfWitness } from 'lease-witness/src/index.ts'
import { parseWaitUrl } from 'lease-witness/src/object/waits.ts'
import { withClockPath, withMovableClock } from './clock.ts'

export const LeaseObject = withMovableClock(LeaseObjectOfWitness, url => JSON.stringify(parseWaitUrl(url).address))

// biome-ignore lint/style/noDefaultExport: a worker is the default export of its module
export default withClockPath(worker)
