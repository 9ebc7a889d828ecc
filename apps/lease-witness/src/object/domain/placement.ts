/** The jurisdictions of Durable Objects (Cloudflare, "Data location"). */
export const JURISDICTIONS = ['eu', 'us', 'fedramp', 'fedramp-high'] as const
export type Jurisdiction = (typeof JURISDICTIONS)[number]

/** The location hints of Durable Objects (Cloudflare, "Data location"). */
export const LOCATION_HINTS = [
  'wnam',
  'enam',
  'sam',
  'weur',
  'eeur',
  'apac',
  'apac-ne',
  'apac-se',
  'oc',
  'afr',
  'me',
] as const
export type LocationHint = (typeof LOCATION_HINTS)[number]

/** The settings as an operator writes them. */
export interface PlacementSettings {
  /** `eu/=weur,us/=enam`: where the objects of new slots are created, by prefix of the slot, without `,` and `=`. */
  readonly LOCATION_HINTS?: string | undefined
  /** Part of the identity of every object: with another value, all slots start without their objects. */
  readonly JURISDICTION?: string | undefined
}

export interface Placement {
  readonly jurisdiction: Jurisdiction | undefined
  /** Longest prefix first. */
  readonly hints: readonly { readonly prefix: string; readonly hint: LocationHint }[]
}

const findIn = <Value extends string>(values: readonly Value[], text: string): Value | undefined =>
  values.find(value => value === text)

/** Parses both settings, or returns what is wrong with them. An absent or blank setting has no effect. */
export const parsePlacement = (
  settings: PlacementSettings,
): { readonly placement: Placement } | { readonly errors: readonly string[] } => {
  const errors: string[] = []
  const jurisdictionText = settings.JURISDICTION?.trim() ?? ''
  const jurisdiction = findIn(JURISDICTIONS, jurisdictionText)
  if (jurisdictionText !== '' && !jurisdiction) errors.push(`JURISDICTION must be one of ${JURISDICTIONS.join(', ')}`)

  const entries = (settings.LOCATION_HINTS ?? '')
    .split(',')
    .map(entry => entry.trim())
    .filter(entry => entry !== '')
  const hints = entries.flatMap(entry => {
    const [prefix, text, ...more] = entry.split('=').map(part => part.trim())
    const hint = findIn(LOCATION_HINTS, text ?? '')
    return prefix !== undefined && hint && more.length === 0 ? [{ prefix, hint }] : []
  })
  if (hints.length < entries.length) {
    errors.push(`LOCATION_HINTS must be prefix=hint, separated by commas; the hints are ${LOCATION_HINTS.join(', ')}`)
  } else if (new Set(hints.map(({ prefix }) => prefix)).size < hints.length) {
    errors.push('LOCATION_HINTS has the same prefix twice: keep one of them')
  }
  if (errors.length > 0) return { errors }
  return { placement: { jurisdiction, hints: hints.toSorted((a, b) => b.prefix.length - a.prefix.length) } }
}

/** The hint of the longest prefix. The empty prefix matches every slot. */
export const findLocationHint = ({ hints }: Placement, slot: string): LocationHint | undefined =>
  hints.find(({ prefix }) => slot.startsWith(prefix))?.hint
