import { parsePlacement } from 'lease-witness/src/object/domain/placement.ts'
import { findIgnoredVariables, findSettingsIssues } from 'lease-witness/src/settings.ts'
import { convertV4MiniflareOptions, Miniflare, NoOpLog } from 'miniflare'
import type { WitnessSpec } from '../protocol.ts'
import { artifacts } from './artifacts.ts'
import type { HostContext, HostedService } from './hosted-service.ts'
import { rejectIgnoredNames, rejectIssues } from './variables.ts'

const LOOPBACK = '127.0.0.1'

/** What a deployed worker could only log. */
const findInvalidValues = (settings: Readonly<Record<string, string>>): readonly string[] => {
  const issues = [...findSettingsIssues(settings), ...findIgnoredVariables(settings)]
  const placement = parsePlacement(settings)
  const texts = issues.map(({ variable, detail }) => `${variable} ${detail}`)
  return 'errors' in placement ? [...texts, ...placement.errors] : texts
}

/** Runs the witness in workerd, with a wrapper that moves its clock. */
export const hostWitnessInWorkerd = async (
  { tokens, env }: WitnessSpec,
  { folder, log, children }: HostContext,
): Promise<HostedService> => {
  await rejectIgnoredNames(env, 'worker')
  const settings = { ...env, BEARER_TOKENS_CSV: tokens.join(',') }
  rejectIssues(findInvalidValues(settings))
  const { script, options } = await artifacts.readWorker()
  // No client can guess it.
  const clockPath = `/${crypto.randomUUID()}`
  let restarted = Promise.withResolvers<void>()
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...options,
      bindings: {
        ...options.bindings,
        ...settings,
        TEST_CLOCK_PATH: clockPath,
      },
      modules: [{ type: 'ESModule', path: 'index.mjs', contents: script }],
      resourcePersistencePath: folder,
      host: LOOPBACK,
      port: 0,
      // Requests bypass Miniflare's entry worker.
      unsafeDirectSockets: [{ host: LOOPBACK, port: 0 }],
      // Works offline: does not fetch a sample of `request.cf`.
      cf: false,
      log: new NoOpLog(),
      handleStructuredLogs: ({ message }) => log.add(message),
      unsafeHandleRuntimeRestart: () => restarted.resolve(),
    }),
  )
  const readPorts = async () => [Number((await miniflare.unsafeGetDirectURL(options.name)).port)]
  let ports = await readPorts()
  let aheadMs = 0

  const setClock = async (ms: number): Promise<void> => {
    aheadMs = ms
    const response = await fetch(`http://${LOOPBACK}:${ports[0]}${clockPath}?ahead=${ms}`, { method: 'POST' })
    if (!response.ok) throw new Error(`the clock of the witness was not set (${response.status})`)
  }

  return {
    ports,
    address: {},
    setClock,
    canSetBack: true,
    kill: async () => {
      restarted = Promise.withResolvers()
      for (const [pid, { spawnfile }] of children) if (spawnfile.endsWith('workerd')) process.kill(pid, 'SIGKILL')
      await restarted.promise
      ports = await readPorts()
      // The clock was in the memory of workerd.
      if (aheadMs !== 0) await setClock(aheadMs)
      return ports
    },
    stop: () => miniflare.dispose(),
  }
}
