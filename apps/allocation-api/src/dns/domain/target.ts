import { ADDRESS_FIELDS, formatDs, TARGET_FIELDS, type Target, type TargetChange } from '@pool/contract'
import { type RecordSet, recordKey, sameValues } from './rrset.ts'

export interface RecordTemplate {
  /** Names relative to the allocated name: `@` is the name itself, `*` its wildcard. */
  readonly names: readonly string[]
  /** Seconds. */
  readonly ttl: number
  /** Seconds, of records at the names of challenges: the lowest that the provider has. `ttl` by default. */
  readonly challengeTtl?: number
}

/** The names of the template at which `consoleLoadBalancerIP` takes the place of `loadBalancerIP`. */
const CONSOLE_NAMES = ['console', 'api']
/** ACME clients follow an alias at this name (RFC 8555 section 8.4), and the wildcard would be one: an empty record hides it. */
export const ACME_NAME = '_acme-challenge'
export const NO_TEXT = '""'

/** The record sets that an active name must have: the only place that knows the forms of a target. */
export const createRecords = (fqdn: string, target: Target, template: RecordTemplate): RecordSet[] => {
  const { names, ttl, challengeTtl = ttl } = template
  const { loadBalancerIP, loadBalancerIPv6, loadBalancerHostname, nameservers, ds = [] } = target
  const { consoleLoadBalancerIP = loadBalancerIP } = target
  const toSet = (
    relative: string,
    type: string,
    values: readonly (string | undefined)[],
    setTtl = ttl,
  ): RecordSet[] => {
    const present = values.filter(value => value !== undefined).sort()
    return present.length === 0
      ? []
      : [{ name: relative === '@' ? fqdn : `${relative}.${fqdn}`, type, ttl: setTtl, values: present }]
  }
  if (nameservers) return [...toSet('@', 'NS', nameservers.map(toAbsolute)), ...toSet('@', 'DS', ds.map(formatDs))]
  if (loadBalancerHostname !== undefined) {
    const aliases = names.flatMap(relative => toSet(relative, 'CNAME', [toAbsolute(loadBalancerHostname)]))
    return names.includes(ACME_NAME) ? aliases : [...aliases, ...toSet(ACME_NAME, 'TXT', [NO_TEXT], challengeTtl)]
  }
  return names.flatMap(relative => [
    ...toSet(relative, 'A', [CONSOLE_NAMES.includes(relative) ? consoleLoadBalancerIP : loadBalancerIP]),
    ...toSet(relative, 'AAAA', [loadBalancerIPv6]),
  ])
}

const toAbsolute = (name: string): string => `${name}.`
const toRelative = (name: string): string => name.replace(/\.$/, '')

const TARGET_TYPES = ['A', 'AAAA', 'CNAME', 'NS', 'DS', 'TXT']
/** No record set of a target has more. */
const MAX_VALUES = 8

/** Whether a record set at or below `fqdn` can be one of a target. */
export const canBeOfTarget = ({ name, type, values }: RecordSet, fqdn: string, { names }: RecordTemplate): boolean => {
  if (!TARGET_TYPES.includes(type) || values.length > MAX_VALUES) return false
  const relative = name === fqdn ? '@' : name.slice(0, -fqdn.length - 1)
  return relative === '@' || relative === ACME_NAME || names.includes(relative)
}

const parseDs = (value: string) => {
  const [keyTag = '', algorithm = '', digestType = '', digest = ''] = value.split(' ')
  return { keyTag: Number(keyTag), algorithm: Number(algorithm), digestType: Number(digestType), digest }
}

/**
 * The target of which `records`, those at and below `fqdn`, have every record set, with whatever TTL; null: none. Of several, the
 * one with most records.
 */
export const findTarget = (
  fqdn: string,
  records: readonly RecordSet[],
  template: RecordTemplate,
): { readonly target: Target; readonly records: readonly RecordSet[] } | null => {
  const found = new Map(records.map(set => [recordKey(set), set]))
  const valuesAt = (relative: string | undefined, type: string) =>
    found.get(recordKey({ name: relative === '@' ? fqdn : `${relative}.${fqdn}`, type }))?.values
  const first = template.names.find(name => !CONSOLE_NAMES.includes(name))
  const consoleName = template.names.find(name => CONSOLE_NAMES.includes(name))
  const [ipv4] = valuesAt(first ?? consoleName, 'A') ?? []
  const [ipv6] = valuesAt(first ?? consoleName, 'AAAA') ?? []
  const [consoleIp] = valuesAt(consoleName, 'A') ?? []
  const [alias] = valuesAt(template.names[0], 'CNAME') ?? []
  const nameservers = valuesAt('@', 'NS')?.map(toRelative)
  const withIpv4 = {
    ...(ipv4 === undefined ? {} : { loadBalancerIP: ipv4 }),
    ...(consoleIp === undefined || consoleIp === ipv4 ? {} : { consoleLoadBalancerIP: consoleIp }),
  }
  const ds = valuesAt('@', 'DS')?.map(parseDs)
  const candidates: readonly (Target | false | undefined)[] = [
    ipv6 !== undefined && { ...withIpv4, loadBalancerIPv6: ipv6 },
    ipv4 !== undefined && withIpv4,
    ipv6 !== undefined && { loadBalancerIPv6: ipv6 },
    alias !== undefined && { loadBalancerHostname: toRelative(alias) },
    nameservers && nameservers.length > 1 && ds && { nameservers, ds },
    nameservers && nameservers.length > 1 && { nameservers },
  ]
  for (const target of candidates) {
    if (!target) continue
    const wanted = createRecords(fqdn, target, template)
    const present = wanted.flatMap(set => found.get(recordKey(set)) ?? [])
    const isComplete = present.length === wanted.length && present.every((set, i) => sameValues(set, wanted[i] ?? set))
    if (isComplete) return { target, records: present }
  }
  return null
}

/** The text of record sets where a target is compared: their values, each once. Null: there are none. */
export const toTargetText = (records: readonly RecordSet[]): string | null => {
  const values = records.filter(({ type }) => type !== 'TXT').flatMap(set => set.values.map(toRelative))
  return values.length === 0 ? null : Array.from(new Set(values)).join(', ')
}

/** A change of a target that is applied to the current one if that still has the fields `kept`. */
export interface TargetPlan {
  /** Null: no address would remain. */
  readonly target: Target | null
  /** The fields of the current target that do not stay. */
  readonly replaced: readonly string[]
  /** The fields that stay. */
  readonly kept: Target
}

const pick = (target: TargetChange, isPicked: (field: keyof Target) => boolean): Target =>
  Object.fromEntries(
    TARGET_FIELDS.flatMap(field => {
      const value = isPicked(field) ? (target[field] ?? undefined) : undefined
      return value === undefined ? [] : [[field, value]]
    }),
  )

const isAddress = (field: keyof Target): boolean => ADDRESS_FIELDS.some(name => name === field)

/** The change of addresses keeps those that it does not name; any other change replaces the whole target. */
export const planTarget = (current: Target, change: TargetChange): TargetPlan => {
  const isNew = Object.keys(pick(change, field => !isAddress(field))).length > 0
  const isKept = (field: keyof Target) => !isNew && isAddress(field) && change[field] === undefined
  const kept = pick(current, isKept)
  const target = { ...kept, ...pick(change, field => isNew !== isAddress(field)) }
  const isWhole = isNew || target.loadBalancerIP !== undefined || target.loadBalancerIPv6 !== undefined
  return { target: isWhole ? target : null, replaced: TARGET_FIELDS.filter(field => !isKept(field)), kept }
}

/** The columns of pool_allocations. A target that is an IPv4 address alone needs only the first. */
export const toTargetColumns = (target: Target | null) => ({
  load_balancer_ip: target?.loadBalancerIP ?? null,
  target: target && Object.keys(target).some(field => field !== 'loadBalancerIP') ? target : null,
})

/** The target of the row `alias` of pool_allocations, JSON. A build before the column wrote only the address. */
export const targetOf = (alias: string): string =>
  `coalesce(${alias}.target, jsonb_build_object('loadBalancerIP', host(${alias}.load_balancer_ip)))`

/** A target, JSON, as the history shows it. */
export const targetText = (target: string): string => `
  concat_ws(', ', ${target} ->> 'loadBalancerIP', ${target} ->> 'loadBalancerIPv6',
    'console ' || (${target} ->> 'consoleLoadBalancerIP'), ${target} ->> 'loadBalancerHostname',
    translate(${target} ->> 'nameservers', '[]"', ''), 'DS ' || translate(${target} ->> 'ds', '[]{}"', ''))`
