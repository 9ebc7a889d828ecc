import { type Api, startApi } from './api.ts'

export interface Replicas {
  readonly apis: readonly Api[]
  /** The next one in turn. */
  next(): Api
  stop(): Promise<void>
}

/** Few connections each: many processes share the run's one Postgres with other test files. */
export const smallPoolEnv = { PDM_DATABASE_POOL_SIZE: '5' }

/** API processes on one database, started at once. */
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
  let turn = 0
  return {
    apis,
    next() {
      const api = apis[turn % apis.length]
      turn += 1
      if (!api) throw new Error('a fleet of none')
      return api
    },
    stop,
  }
}
