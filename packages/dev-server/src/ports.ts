import { createSocket } from 'node:dgram'
import { connect, createServer } from 'node:net'
import { pollUntil } from './poll.ts'
import type { StartSettings } from './settings.ts'
import { UserError } from './user-error.ts'

/** Returns a TCP port that was free just now. Another process may bind it first, so the caller must be ready to retry. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port)
        else reject(new Error('no free port'))
      })
    })
  })
}

/** Whether 127.0.0.1 accepts TCP connections on this port. */
export function isListening(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    }).on('error', () => resolve(false))
  })
}

/** Whether a socket is bound to the port, on loopback or on all addresses, IPv4 or IPv6. */
export async function isPortInUse(port: number, udp = false): Promise<boolean> {
  const attempt = udp ? bindUdp : listenTcp
  for (const host of ['127.0.0.1', '::1', '0.0.0.0', '::']) {
    if (await attempt(port, host)) return true
  }
  return false
}

// Other errors (no IPv6, a privileged port) do not mean that another process uses the port.
const isAddressInUse = (error: NodeJS.ErrnoException) => error.code === 'EADDRINUSE'

function listenTcp(port: number, host: string): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer().on('error', error => resolve(isAddressInUse(error)))
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(false)))
  })
}

function bindUdp(port: number, host: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4').on('error', error => {
      socket.close()
      resolve(isAddressInUse(error))
    })
    socket.bind({ port, address: host, exclusive: true }, () => socket.close(() => resolve(false)))
  })
}

/** After `start` was killed, its API needs up to this time to drain. */
const STALE_PROCESS_TIMEOUT_MS = 20_000

const variables = {
  apiPort: 'PORT',
  operatorPort: 'PDM_OPERATOR_PORT',
  dnsPort: 'DNS_PORT',
  witnessPort: 'WITNESS_PORT',
} as const
type PortName = keyof typeof variables

/** Replaces default ports that are in use. Throws a `UserError` that lists every explicitly set port in use. */
export async function resolvePorts(settings: StartSettings, waitForStaleProcess: boolean): Promise<StartSettings> {
  let inUse: PortName[] = []
  const isFree = async () => {
    inUse = await findPortsInUse(settings)
    return inUse.length === 0
  }
  await pollUntil(isFree, { intervalMs: 100, timeoutMs: waitForStaleProcess ? STALE_PROCESS_TIMEOUT_MS : 0 })

  const isDefault = (name: PortName) => settings.defaultPorts.some(port => port === name)
  const errors = inUse
    .filter(name => !isDefault(name))
    .map(name => `port ${settings[name]} is already in use; stop that process or set ${variables[name]}`)
  if (errors.length > 0) throw new UserError(errors.join('\n'))
  const replaced: Partial<Record<PortName, number>> = {}
  for (const name of inUse) replaced[name] = await freePort()
  return { ...settings, ...replaced }
}

async function findPortsInUse(settings: StartSettings): Promise<PortName[]> {
  const { apiPort, operatorPort, dnsPort, witnessPort } = settings
  const checks: readonly (readonly [PortName, boolean])[] = [
    ['apiPort', await isPortInUse(apiPort)],
    ['operatorPort', operatorPort === apiPort || (await isPortInUse(operatorPort))],
    [
      'dnsPort',
      [apiPort, operatorPort].includes(dnsPort) || (await isPortInUse(dnsPort)) || (await isPortInUse(dnsPort, true)),
    ],
    ['witnessPort', [apiPort, operatorPort, dnsPort].includes(witnessPort) || (await isPortInUse(witnessPort))],
  ]
  return checks.filter(([_, isUsed]) => isUsed).map(([name]) => name)
}
