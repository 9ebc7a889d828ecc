import { randomBytes } from 'node:crypto'
import { type PowerdnsServer, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { createPowerdnsProvider } from '../../../src/dns/providers/powerdns/index.ts'
import type { ProviderSubject } from '../conformance.ts'

/** A zone of a separate PowerDNS, for the conformance suite. */
export const startPowerdnsSubject = async (
  settings: readonly string[] = [],
): Promise<ProviderSubject & { readonly server: PowerdnsServer }> => {
  const server = await startPowerdns(settings)
  const zone = `pool-${randomBytes(4).toString('hex')}.test`
  const wrongKey = randomBytes(16).toString('hex')
  try {
    await server.createZone(zone)
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
  const provider = createPowerdnsProvider(server.options)
  const withWrongKey = createPowerdnsProvider({ ...server.options, apiKey: wrongKey })
  return {
    server,
    provider,
    zone,
    records: () => server.records(zone),
    put: set => server.put(zone, set),
    remove: (name, type) => server.remove(zone, name, type),
    stop: server.stop,
    start: server.start,
    withWrongKey,
    secrets: [server.options.apiKey, wrongKey],
    async [Symbol.asyncDispose]() {
      await Promise.all([provider.close(), withWrongKey.close()])
      await server[Symbol.asyncDispose]()
    },
  }
}
