import { PlainError } from './plain-error.ts'
import { isPortTaken } from './ports.ts'
import type { Settings } from './settings.ts'
import { until } from './wait.ts'

/** An API whose start was killed drains for so long. */
const LEFTOVER_ENDS_WITHIN_MS = 20_000

/** Every taken port at once, each with the variable that chooses another. */
export async function refuseTakenPorts(settings: Settings, mayBeLeftover: boolean): Promise<void> {
  let taken: string[] = []
  const isFree = async () => {
    taken = await takenPorts(settings)
    return taken.length === 0
  }
  if (await until(isFree, { everyMs: 100, withinMs: mayBeLeftover ? LEFTOVER_ENDS_WITHIN_MS : 0 })) return
  throw new PlainError(taken.join('\n'))
}

async function takenPorts({ apiPort, operatorPort, dnsPort }: Settings): Promise<string[]> {
  const wanted = [
    { variable: 'PORT', port: apiPort, isTaken: await isPortTaken(apiPort) },
    { variable: 'PDM_OPERATOR_PORT', port: operatorPort, isTaken: await isPortTaken(operatorPort) },
    {
      variable: 'DNS_PORT',
      port: dnsPort,
      isTaken: (await isPortTaken(dnsPort)) || (await isPortTaken(dnsPort, true)),
    },
  ]
  return wanted
    .filter(({ isTaken }) => isTaken)
    .map(
      ({ variable, port }) => `port ${port} is taken by another process: stop it, or choose another with ${variable}=…`,
    )
}
