import { listDurableObjectIds, runDurableObjectAlarm } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import type { WorkerEnv } from '../../../src/env.ts'
import worker from '../../../src/index.ts'
import { createRequest, type ReceivedResponse, readResponse, type SendOptions } from '../../http/support/client.ts'
import { installHost, type WitnessRequest } from '../../http/support/host.ts'
import { readStored, seed, slotObject } from './object.ts'

type Bindings = { readonly [Name in keyof WorkerEnv]?: WorkerEnv[Name] | undefined }

const toRequest = ({ path, ...init }: WitnessRequest): Request => new Request(`http://witness.test${path}`, init)

const fetchWith = (bindings: Bindings, request: WitnessRequest): Promise<Response> =>
  Promise.resolve(worker.fetch(toRequest(request), { ...env, ...bindings } as WorkerEnv))

/** Sends a request to the worker with other bindings. */
export const sendWithBindings = async (
  bindings: Bindings,
  method: string,
  path: string,
  options: SendOptions = {},
): Promise<ReceivedResponse> => readResponse(await fetchWith(bindings, createRequest(method, path, options)))

installHost({
  send: (request, settings) =>
    Object.keys(settings).length === 0 ? exports.default.fetch(toRequest(request)) : fetchWith(settings, request),
  seed,
  readStored,
  countStored: async () => (await listDurableObjectIds(env.LEASES)).length,
  countWaiters: async slot => await slotObject(slot).waiterCount(),
  writeCopy: async slot => void (await runDurableObjectAlarm(slotObject(slot))),
})
