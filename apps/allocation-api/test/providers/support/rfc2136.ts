import { randomBytes } from 'node:crypto'
import { createRfc2136Provider } from '../../../src/dns/providers/rfc2136/index.ts'
import type { ProviderSubject } from '../harness.ts'
import { type ServerKind, startServer } from './rfc2136/server.ts'

export const startRfc2136Subject = async (kind: ServerKind): Promise<ProviderSubject> => {
  const server = await startServer(kind)
  const options = server.options()
  const wrongSecret = randomBytes(32).toString('base64')
  return {
    provider: createRfc2136Provider(options),
    zone: server.zone,
    records: server.records,
    put: server.put,
    remove: server.remove,
    ...(kind.maxRecordSets === undefined ? {} : { maxRecordSets: kind.maxRecordSets }),
    stop: server.stop,
    start: server.start,
    withWrongKey: createRfc2136Provider({ ...options, tsig: { ...options.tsig, secret: wrongSecret } }),
    secrets: [server.secret, wrongSecret],
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
