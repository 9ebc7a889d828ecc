import { createSocket } from 'node:dgram'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { pollUntil } from './poll.ts'
import type { StartSettings } from './settings.ts'
import { UserError } from './user-error.ts'

/** Linux takes the ports of outgoing connections and of servers without a port from 32768 on, other systems from 49152 on. */
const FIRST_FREE_PORT = 16_384
const FREE_PORTS = 16_384
/** Processes that run at the same time begin at different ports, so that they seldom choose the same one. */
const PORTS_PER_PROCESS = 64
const PROCESSES = FREE_PORTS / PORTS_PER_PROCESS

/** A later process that has the same range begins at another port of it. */
let nextPort = (process.pid * PORTS_PER_PROCESS + Math.floor(process.pid / PROCESSES)) % FREE_PORTS

/**
 * Returns a port that no TCP or UDP socket uses, and that this process has not returned before. The system does not assign
 * it to another socket. Another process can bind it first if it asks for this port.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < FREE_PORTS; attempt += 1) {
    const port = FIRST_FREE_PORT + nextPort
    nextPort = (nextPort + 1) % FREE_PORTS
    if (!(await isPortInUse(port)) && !(await isPortInUse(port, true))) return port
  }
  throw new Error('no free port')
}

/** Starts the server on a port of 127.0.0.1 that the system chooses, and returns the port. */
export async function listenOnLoopback(server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
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
