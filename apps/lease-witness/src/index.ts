import { createApp } from './app.ts'
import { createLeaseDirectory } from './kv-copy/copy.ts'
import { createLeaseService } from './object/client.ts'

export { LeaseObject } from './object/lease-object.ts'

const app = createApp({ leases: createLeaseService, directory: createLeaseDirectory })

export default { fetch: app.fetch }
