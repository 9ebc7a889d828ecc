import { type AppDependencies, createApp } from '../../src/http/app.ts'
import type { DeploymentVerbs } from '../../src/http/routes/deployments.ts'
import { createEventStreams } from '../../src/http/sse.ts'

const refuse = (): never => {
  throw new Error('wired, not called')
}

/** Nothing of it can be called: for tests that look at what is mounted, and to take a part from. */
export const unused: AppDependencies = {
  verbs: {
    check: refuse,
    get: refuse,
    reserve: refuse,
    commit: refuse,
    renew: refuse,
    release: refuse,
    list: refuse,
    readHistory: refuse,
    converge: refuse,
    validateKeys: refuse,
    validateToken: refuse,
  },
  deployments: { create: refuse, get: refuse, list: refuse, remove: refuse, follow: refuse },
  streams: { enter: refuse },
  providers: { objectStorage: 'hetzner', token: ['hetzner'] },
  health: { databaseAnswers: refuse, phase: refuse, managedDomains: [] },
  metrics: { contentType: 'text/plain', text: refuse },
  reservedLabels: [],
  openApi: {},
  observer: { onRequest: refuse, onRequestFailed: refuse, onResponseAborted: refuse },
  isUnavailable: refuse,
}

type Told = (readonly [message: string, requestId: string])[]

/** The app over scripted deployments; `errors` and `brokenOff` are what was told, with the id of the request. */
export const scriptedApp = (
  deployments: Partial<DeploymentVerbs>,
  options: { readonly seats?: number; readonly patienceMs?: number } = {},
) => {
  const stopping = new AbortController()
  const errors: Told = []
  const brokenOff: Told = []
  const outcomes: string[] = []
  const app = createApp(
    {
      ...unused,
      deployments: { ...unused.deployments, ...deployments },
      streams: createEventStreams({ stopping: stopping.signal, ...options }),
      observer: {
        onRequest: ({ outcome }) => outcomes.push(outcome),
        onRequestFailed: (error, requestId) => errors.push([String(error), requestId]),
        onResponseAborted: (error, requestId) => brokenOff.push([String(error), requestId]),
      },
      isUnavailable: error => error instanceof Error && error.message === 'away',
    },
    { listener: 'in-cluster', tokens: null, exposeLists: true },
  )
  return { app, stopping, errors, brokenOff, outcomes }
}
