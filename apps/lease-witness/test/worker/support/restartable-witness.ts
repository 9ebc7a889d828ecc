import type { WorkerEnv } from '../../../src/env.ts'
import worker, { LeaseObject as Base } from '../../../src/index.ts'

/** An object that a test can restart. */
export class LeaseObject extends Base {
  restart(): void {
    this.ctx.abort('restarted by a test')
  }
}

const PATH = '/restart/'

// biome-ignore lint/style/noDefaultExport: a worker is the default export of its module
export default {
  async fetch(request: Request, env: WorkerEnv): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (!pathname.startsWith(PATH)) return worker.fetch(request, env)
    const object = env.LEASES.getByName(pathname.slice(PATH.length))
    // The call fails because the object is aborted.
    await (object as unknown as { restart: () => Promise<void> }).restart().catch(() => {})
    return new Response()
  },
}
