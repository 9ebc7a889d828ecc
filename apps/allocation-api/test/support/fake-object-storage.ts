import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { listXml } from './credentials/scenarios.ts'

/** An object storage endpoint that accepts all keys. Tests of the key check use a real gateway. */
export const startFakeObjectStorage = async (identity: { readonly key: string; readonly cert: string }) => {
  const server = createServer(identity, (_, response) => response.end(listXml('tenant')))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
