import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import type { AddressInfo } from 'node:net'

/** The addresses of a name in the zone; none if the name does not exist. */
export const lookUp = async (server: string, name: string): Promise<readonly string[]> => {
  const resolver = new Resolver({ timeout: 5_000, tries: 3 })
  resolver.setServers([server])
  return resolver.resolve4(name).catch(error => {
    if (error.code === 'ENOTFOUND' || error.code === 'ENODATA') return []
    throw error
  })
}

export interface TxtServer extends AsyncDisposable {
  readonly address: string
  /** The texts of the TXT records of every name. */
  readonly texts: string[]
}

/** A DNS server of other domains, in whose zones every name has the same TXT records (RFC 1035 section 4.1). */
export const startTxtServer = async (): Promise<TxtServer> => {
  const texts: string[] = []
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const [header, end] = [Buffer.from(query.subarray(0, 12)), query.indexOf(0, 12) + 5]
    header.writeUInt16BE(0x8580, 2)
    header.writeUInt16BE(texts.length, 6)
    header.fill(0, 8)
    const records = texts.map(text => {
      // A pointer to the name of the question; TXT, IN, a TTL of 0.
      const fields = [0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, text.length + 1, text.length]
      return Buffer.concat([Buffer.from(fields), Buffer.from(text)])
    })
    socket.send(Buffer.concat([header, query.subarray(12, end), ...records]), port, address)
  })
  await new Promise<void>(resolve => socket.bind(0, '127.0.0.1', resolve))
  const { port } = socket.address() as AddressInfo
  return {
    address: `127.0.0.1:${port}`,
    texts,
    [Symbol.asyncDispose]: () => new Promise(resolve => socket.close(resolve)),
  }
}
