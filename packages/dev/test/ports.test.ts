import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { freePort, isPortInUse, resolvePorts } from '../src/ports.ts'
import { readStartSettings } from '../src/settings.ts'

test('freePort returns a port that is not in use', async () => {
  const port = await freePort()
  expect(await isPortInUse(port)).toBe(false)
  expect(await isPortInUse(port, true)).toBe(false)
})

test('freePort returns different ports below the range of the system', async () => {
  const ports = await Promise.all(Array.from({ length: 100 }, freePort))
  expect(new Set(ports).size).toBe(100)
  expect(Math.max(...ports)).toBeLessThan(32_768)
})

test('freePort omits a port that another socket uses', async () => {
  const port = await freePort()
  await occupy(port + 1)
  expect(await freePort()).not.toBe(port + 1)
})

test.each(['127.0.0.1', '0.0.0.0', '::'])('a TCP listener on %s uses its port for TCP only', async host => {
  const server = createServer()
  const port = await freePort()
  await new Promise<void>(resolve => server.listen(port, host, resolve))
  expect(await isPortInUse(port)).toBe(true)
  expect(await isPortInUse(port, true)).toBe(false)
  await new Promise(resolve => server.close(resolve))
  expect(await isPortInUse(port)).toBe(false)
})

test.each(['127.0.0.1', '0.0.0.0'])('a UDP socket on %s uses its port for UDP only', async host => {
  const socket = createSocket('udp4')
  const port = await freePort()
  await new Promise<void>(resolve => socket.bind(port, host, resolve))
  expect(await isPortInUse(port, true)).toBe(true)
  expect(await isPortInUse(port)).toBe(false)
  await new Promise<void>(resolve => socket.close(resolve))
  expect(await isPortInUse(port, true)).toBe(false)
})

const servers: ReturnType<typeof createServer>[] = []
const occupy = async (port: number): Promise<void> => {
  const server = createServer()
  servers.push(server)
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
}
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

const createSettings = async () => ({
  ...readStartSettings({ PORT: String(await freePort()) }, '/project'),
  operatorPort: await freePort(),
  dnsPort: await freePort(),
  witnessPort: await freePort(),
})

test('resolvePorts keeps free ports', async () => {
  const settings = await createSettings()
  expect(await resolvePorts(settings, false)).toEqual(settings)
})

test('resolvePorts replaces a default port that another process or an explicit port uses', async () => {
  const settings = await createSettings()
  await occupy(settings.dnsPort)
  const resolved = await resolvePorts({ ...settings, operatorPort: settings.apiPort }, false)
  expect(resolved.apiPort).toBe(settings.apiPort)
  expect(resolved.dnsPort).not.toBe(settings.dnsPort)
  expect(resolved.operatorPort).not.toBe(settings.apiPort)
  expect(resolved.witnessPort).toBe(settings.witnessPort)
  await occupy(settings.witnessPort)
  expect((await resolvePorts(settings, false)).witnessPort).not.toBe(settings.witnessPort)
})

test('resolvePorts rejects an explicit port that is in use', async () => {
  const settings = await createSettings()
  await occupy(settings.apiPort)
  await occupy(settings.dnsPort)
  await expect(resolvePorts({ ...settings, defaultPorts: [] }, false)).rejects.toThrow(
    `port ${settings.apiPort} is already in use; stop that process or set PORT\n` +
      `port ${settings.dnsPort} is already in use; stop that process or set DNS_PORT`,
  )
})
