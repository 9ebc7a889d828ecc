import { describe, expect, test } from 'vitest'
import type { WorkerEnv } from '../env.ts'
import { toUnavailable } from './client.ts'
import type { PlacementSettings } from './domain/placement.ts'
import { createObjectLookup, PlacementError } from './lookup.ts'

/** workerd does not implement jurisdictions. */
const fakeNamespace = (calls: unknown[][]) => {
  const create = (jurisdiction?: string): unknown => ({
    jurisdiction: (name: string) => create(name),
    getByName: (name: string, options?: object) => void calls.push([jurisdiction, name, options]),
  })
  return create() as WorkerEnv['LEASES']
}

const lookUp = (settings: PlacementSettings, name: string): unknown[] | undefined => {
  const calls: unknown[][] = []
  createObjectLookup({ LEASES: fakeNamespace(calls), ...settings })(name)
  return calls[0]
}

describe('the object of a slot', () => {
  test.each<readonly [settings: PlacementSettings, slot: string, lookup: unknown[]]>([
    [{}, 'eu/a', [undefined, 'eu/a', undefined]],
    [{ JURISDICTION: 'eu' }, 'eu/a', ['eu', 'eu/a', undefined]],
    [{ LOCATION_HINTS: 'eu/=weur' }, 'eu/a', [undefined, 'eu/a', { locationHint: 'weur' }]],
    [{ LOCATION_HINTS: 'eu/=weur' }, 'us/a', [undefined, 'us/a', undefined]],
    [{ LOCATION_HINTS: '=eeur', JURISDICTION: 'eu' }, 'a', ['eu', 'a', { locationHint: 'eeur' }]],
  ])('%j, %s', (settings, slot, lookup) => {
    expect(lookUp(settings, slot)).toEqual(lookup)
  })

  test.each<PlacementSettings>([{ JURISDICTION: 'europe' }, { LOCATION_HINTS: 'eu/' }])(
    'cannot be found: %j',
    settings => {
      expect(() => lookUp(settings, 'eu/a')).toThrow(PlacementError)
    },
  )

  test('invalid settings are a 503, whose reason is in the log', () => {
    const error = new PlacementError('JURISDICTION must be one of eu, us')
    const reason = 'PlacementError: JURISDICTION must be one of eu, us'
    expect(toUnavailable(error)).toEqual({ kind: 'lease-unavailable', reason })
  })
})
