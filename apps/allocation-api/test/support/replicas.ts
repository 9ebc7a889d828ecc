import { type Api, startApi } from './api.ts'

export interface Replicas {
  readonly apis: readonly Api[]
  /** Round robin. */
  next(): Api
  stop(): Promise<void>
}

/** All test files share the connections of one Postgres. */
export const smallPoolEnv = { PDM_DATABASE_POOL_SIZE: '5' }

/** Starts API processes on one database, concurrently. */
export const startReplicas = async (
  url: string,
  count: number,
  env: Record<string, string> = {},
): Promise<Replicas> => {
  const starts = await Promise.allSettled(
    Array.from({ length: count }, () => startApi(url, { ...smallPoolEnv, ...env })),
  )
  const apis = starts.flatMap(start => (start.status === 'fulfilled' ? [start.value] : []))
  const stop = async () => {
    await Promise.all(apis.map(api => api.process.kill()))
  }
  const failed = starts.find(start => start.status === 'rejected')
  if (failed) {
    await stop()
    throw failed.reason
  }
  let nextIndex = 0
  return {
    apis,
    next() {
      const api = apis[nextIndex % apis.length]
      nextIndex += 1
      if (!api) throw new Error('startReplicas needs a count of at least 1')
      return api
    },
    stop,
  }
}
