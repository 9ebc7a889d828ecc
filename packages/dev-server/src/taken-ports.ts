import { until } from './poll.ts'
import { freePort, isPortTaken } from './ports.ts'
import type { Settings } from './settings.ts'
import { PlainError } from './user-error.ts'

/** An API whose start was killed drains for so long. */
const LEFTOVER_ENDS_WITHIN_MS = 20_000

const variables = {
  apiPort: 'PORT',
  operatorPort: 'PDM_OPERATOR_PORT',
  dnsPort: 'DNS_PORT',
  witnessPort: 'WITNESS_PORT',
} as const
type PortName = keyof typeof variables

/** The settings with ports that are free. Every taken one that was chosen at once, each with its variable, is told. */
export async function settlePorts(settings: Settings, mayBeLeftover: boolean): Promise<Settings> {
  let taken: PortName[] = []
  const isFree = async () => {
    taken = await takenPorts(settings)
    return taken.length === 0
  }
  await until(isFree, { everyMs: 100, withinMs: mayBeLeftover ? LEFTOVER_ENDS_WITHIN_MS : 0 })

  const isMovable = (name: PortName) => settings.movable.some(movable => movable === name)
  const faults = taken
    .filter(name => !isMovable(name))
    .map(
      name =>
        `port ${settings[name]} is taken by another process: stop it, or choose another with ${variables[name]}=…`,
    )
  if (faults.length > 0) throw new PlainError(faults.join('\n'))
  const moved: Partial<Record<PortName, number>> = {}
  for (const name of taken) moved[name] = await freePort()
  return { ...settings, ...moved }
}

async function takenPorts(settings: Settings): Promise<PortName[]> {
  const { apiPort, operatorPort, dnsPort, witnessPort } = settings
  const checks: readonly (readonly [PortName, boolean])[] = [
    ['apiPort', await isPortTaken(apiPort)],
    ['operatorPort', operatorPort === apiPort || (await isPortTaken(operatorPort))],
    [
      'dnsPort',
      [apiPort, operatorPort].includes(dnsPort) || (await isPortTaken(dnsPort)) || (await isPortTaken(dnsPort, true)),
    ],
    ['witnessPort', [apiPort, operatorPort, dnsPort].includes(witnessPort) || (await isPortTaken(witnessPort))],
  ]
  return checks.filter(([_, isTaken]) => isTaken).map(([name]) => name)
}
