import {
  createExecutionContext,
  listDurableObjectIds,
  runDurableObjectAlarm,
  waitOnExecutionContext,
} from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import type { WorkerEnv } from '../../../src/env.ts'
import worker from '../../../src/index.ts'
import { createRequest, type ReceivedResponse, readResponse, type SendOptions } from '../../http/support/client.ts'
import { installHost } from '../../http/support/host.ts'
import { readStored, seed, slotObject } from './object.ts'

type Bindings = { readonly [Name in keyof WorkerEnv]?: WorkerEnv[Name] | undefined }

const fetchWith = async (bindings: Bindings, request: Request): Promise<Response> => {
  const context = createExecutionContext()
  const response = await worker.fetch(request, { ...env, ...bindings }, context)
  // Its body is read here, because a stream ends with the context.
  const complete = new Response(response.body === null ? null : await response.arrayBuffer(), response)
  await waitOnExecutionContext(context)
  return complete
}

/** Sends a request to the worker with other bindings. */
export const sendWithBindings = async (
  bindings: Bindings,
  method: string,
  path: string,
  options: SendOptions = {},
): Promise<ReceivedResponse> => readResponse(await fetchWith(bindings, createRequest(method, path, options)))

installHost({
  fetch: (request, settings) =>
    Object.keys(settings).length === 0 ? exports.default.fetch(request) : fetchWith(settings, request),
  seed,
  readStored,
  countStored: async () => (await listDurableObjectIds(env.LEASES)).length,
  countWaiters: async slot => await slotObject(slot).waiterCount(),
  writeCopy: async slot => void (await runDurableObjectAlarm(slotObject(slot))),
})
