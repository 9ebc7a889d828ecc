import { createServer } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { freePort } from '../src/ports.ts'
import { readSettings } from '../src/settings.ts'
import { settlePorts } from '../src/taken-ports.ts'

const servers: ReturnType<typeof createServer>[] = []
const occupy = async (port: number): Promise<void> => {
  const server = createServer()
  servers.push(server)
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
}
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

const settingsOf = async () => ({
  ...readSettings({ PORT: String(await freePort()) }, '/project'),
  operatorPort: await freePort(),
  dnsPort: await freePort(),
  witnessPort: await freePort(),
})

test('leaves free ports as they are', async () => {
  const settings = await settingsOf()
  expect(await settlePorts(settings, false)).toEqual(settings)
})

test('moves a default that is taken, by others or by a chosen port', async () => {
  const settings = await settingsOf()
  await occupy(settings.dnsPort)
  const moved = await settlePorts({ ...settings, operatorPort: settings.apiPort }, false)
  expect(moved.apiPort).toBe(settings.apiPort)
  expect(moved.dnsPort).not.toBe(settings.dnsPort)
  expect(moved.operatorPort).not.toBe(settings.apiPort)
  expect(moved.witnessPort).toBe(settings.witnessPort)
  await occupy(settings.witnessPort)
  expect((await settlePorts(settings, false)).witnessPort).not.toBe(settings.witnessPort)
})

test('does not move a port that was chosen', async () => {
  const settings = await settingsOf()
  await occupy(settings.apiPort)
  await occupy(settings.dnsPort)
  await expect(settlePorts({ ...settings, movable: [] }, false)).rejects.toThrow(
    `port ${settings.apiPort} is taken by another process: stop it, or choose another with PORT=…\n` +
      `port ${settings.dnsPort} is taken by another process: stop it, or choose another with DNS_PORT=…`,
  )
})
