import { findUnknownVariables, type UnknownVariable } from '@pool/runtime/service/unknown-variables'
import { SETTINGS } from './settings.ts'

/** Every variable of the worker. */
export const WORKER_VARIABLES: readonly string[] = [...SETTINGS, 'DRAIN', 'JURISDICTION', 'LOCATION_HINTS']

/** The variables of a worker that have no effect, probably by mistake. `env` also has its other bindings. */
export const findIgnoredVariables = (env: object): readonly UnknownVariable[] => {
  const texts = Object.fromEntries(Object.entries(env).filter(([, value]) => typeof value === 'string'))
  const isDrainValid = ['', 'true', 'false'].includes(texts.DRAIN ?? '')
  return [
    ...(isDrainValid ? [] : [{ variable: 'DRAIN', detail: 'must be true or false' }]),
    ...findUnknownVariables(texts, { prefixes: [], names: WORKER_VARIABLES }),
  ]
}
