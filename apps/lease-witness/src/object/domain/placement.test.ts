import { describe, expect, test } from 'vitest'
import { findLocationHint, type Placement, type PlacementSettings, parsePlacement } from './placement.ts'

const toPlacement = (settings: PlacementSettings): Placement => {
  const parsed = parsePlacement(settings)
  if ('errors' in parsed) throw new Error(parsed.errors.join('; '))
  return parsed.placement
}

describe('JURISDICTION', () => {
  test.each<readonly [text: string | undefined, jurisdiction: Placement['jurisdiction']]>([
    [undefined, undefined],
    ['', undefined],
    [' ', undefined],
    ['eu', 'eu'],
    [' us ', 'us'],
    ['fedramp', 'fedramp'],
    ['fedramp-high', 'fedramp-high'],
  ])('%j', (text, jurisdiction) => {
    expect(toPlacement({ JURISDICTION: text }).jurisdiction).toBe(jurisdiction)
  })

  // Objects without a jurisdiction are others: falling back to them would be worse than an error.
  test.each(['EU', 'europe', 'eu,us', 'none'])('%j is an error', text => {
    expect(parsePlacement({ JURISDICTION: text })).toEqual({
      errors: ['JURISDICTION must be one of eu, us, fedramp, fedramp-high'],
    })
  })
})

describe('LOCATION_HINTS', () => {
  test.each<readonly [text: string | undefined, slot: string, hint: string | undefined]>([
    [undefined, 'eu/a', undefined],
    ['', 'eu/a', undefined],
    [' , ', 'eu/a', undefined],
    ['eu/=weur', 'eu/a', 'weur'],
    ['eu/=weur', 'us/a', undefined],
    ['eu/=weur', 'EU/a', undefined],
    [' eu/ = weur , us/=enam ', 'us/a', 'enam'],
    ['eu/=weur,eu/east/=eeur', 'eu/east/a', 'eeur'],
    ['eu/east/=eeur,eu/=weur', 'eu/east/a', 'eeur'],
    ['eu/east/=eeur,eu/=weur', 'eu/west/a', 'weur'],
    ['=apac-ne', 'anything', 'apac-ne'],
    ['=apac-ne,eu/=weur', 'eu/a', 'weur'],
  ])('%j, slot %s: %j', (text, slot, hint) => {
    expect(findLocationHint(toPlacement({ LOCATION_HINTS: text }), slot)).toBe(hint)
  })

  test.each(['eu/', 'eu/=', 'eu/=europe', 'eu/=WEUR', 'eu/=weur;us/=enam', 'a=b=oc', 'weur'])(
    '%j is an error',
    text => {
      expect(parsePlacement({ LOCATION_HINTS: text })).toEqual({
        errors: [
          expect.stringMatching(/^LOCATION_HINTS must be prefix=hint, separated by commas; the hints are wnam, /),
        ],
      })
    },
  )

  test('a prefix that occurs twice is an error', () => {
    expect(parsePlacement({ LOCATION_HINTS: 'eu/=weur,eu/=eeur' })).toEqual({
      errors: ['LOCATION_HINTS has the same prefix twice: keep one of them'],
    })
  })

  test('all errors of both settings are reported', () => {
    const parsed = parsePlacement({ LOCATION_HINTS: 'x', JURISDICTION: 'x' })
    expect('errors' in parsed && parsed.errors).toHaveLength(2)
  })
})
