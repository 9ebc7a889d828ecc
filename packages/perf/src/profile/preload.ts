import { rename, writeFile } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'

/**
 * Loaded into a service with `--import`. The first SIGUSR2 starts V8's CPU profiler, the second one writes the profile to
 * PROFILE_FILE, so it has neither the start of the service nor its first requests.
 */
const INTERVAL_US = 200
const file = process.env.PROFILE_FILE ?? ''
let session: Session | null = null

const toggle = async (): Promise<void> => {
  if (session === null) {
    session = new Session()
    session.connect()
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US })
    await session.post('Profiler.start')
    await writeFile(`${file}.started`, '')
    return
  }
  const { profile } = await session.post('Profiler.stop')
  await writeFile(`${file}.part`, JSON.stringify(profile))
  await rename(`${file}.part`, file)
}
process.on('SIGUSR2', () => void toggle())
