import { randomBytes } from 'node:crypto'
import { freePort } from '@pool/dev/ports'
import { expect, test } from 'vitest'
import type { DnsProvider } from '../../src/dns/provider.ts'
import { createCloudflareProvider } from '../../src/dns/providers/cloudflare/index.ts'
import { createDynadotProvider } from '../../src/dns/providers/dynadot/index.ts'
import { createPowerdnsProvider } from '../../src/dns/providers/powerdns/index.ts'
import { createRfc2136Provider } from '../../src/dns/providers/rfc2136/index.ts'
import { ProviderClient } from '../../src/reconciler/provider-client.ts'

/** Nothing listens there. */
const port = await freePort()
const url = `http://127.0.0.1:${port}/`
const zone = 'pool.test'

const providers: Readonly<Record<string, DnsProvider>> = {
  powerdns: createPowerdnsProvider({ url, apiKey: 'key', serverId: 'localhost' }),
  cloudflare: createCloudflareProvider({ url, apiToken: 'token' }),
  dynadot: createDynadotProvider({ url, apiKey: 'key' }),
  rfc2136: createRfc2136Provider({
    server: { host: '127.0.0.1', port },
    tsig: { name: 'key.test', secret: randomBytes(32).toString('base64') },
  }),
}

test.each(Object.entries(providers))(
  '%s: the circuit opens at the third failed read, of names and of a zone',
  async (_, provider) => {
    const everything = { names: [], branches: [zone] }
    const reads = {
      names: (client: ProviderClient) => client.read(zone, { names: [`acme.${zone}`], branches: [] }),
      branches: (client: ProviderClient) => client.read(zone, everything),
      zone: (client: ProviderClient) => client.readZone(zone, async () => {}),
    }
    for (const [what, read] of Object.entries(reads)) {
      let now = 0
      const opened: string[] = []
      const client = new ProviderClient({
        provider,
        timeoutMs: 60_000,
        now: () => now,
        random: () => 0.5,
        observer: {
          onProviderCall() {},
          onCircuitOpened: reason => void opened.push(reason),
          onCircuitClosed() {},
          onError() {},
        },
        tracer: null,
        writesZones: true,
      })
      for (let failures = 1; failures <= 3; failures += 1) {
        expect([what, client.isCircuitOpen()]).toEqual([what, false])
        expect(await read(client)).toMatchObject({ kind: 'unavailable' })
        now += 60_000
      }
      expect([what, opened]).toEqual([what, [expect.stringContaining('ECONNREFUSED')]])
    }
  },
)
