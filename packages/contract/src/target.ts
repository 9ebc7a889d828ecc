import * as z from 'zod'
import { rule, violation } from './allocation-problem.ts'
import { absentIfNull, createFqdn, createLoadBalancerIP, loadBalancerIPv6 } from './fields.ts'

/** A record of the child zone's key (RFC 4034 section 5), in presentation format. */
export const formatDs = ({ keyTag, algorithm, digestType, digest }: DelegationSigner): string =>
  `${keyTag} ${algorithm} ${digestType} ${digest}`

const delegationSigner = z
  .object({ keyTag: z.int(), algorithm: z.int(), digestType: z.int(), digest: z.string() })
  .meta({ id: 'DelegationSigner', description: 'A DS record; `digest` is in hexadecimal.' })
export type DelegationSigner = z.infer<typeof delegationSigner>

/** What the records of a name point to, in one of three forms. The fields of another form are absent. */
export const targetFields = {
  loadBalancerIP: z.ipv4().optional().meta({ description: 'The address of its A records.' }),
  loadBalancerIPv6: z.ipv6().optional().meta({ description: 'The address of its AAAA records, as in RFC 5952.' }),
  consoleLoadBalancerIP: z
    .ipv4()
    .optional()
    .meta({ description: 'The address of the A records of `console` and `api`.' }),
  loadBalancerHostname: z.string().optional().meta({ description: 'The target of its CNAME records.' }),
  nameservers: z.array(z.string()).optional().meta({ description: 'The name servers that the name is delegated to.' }),
  ds: z.array(delegationSigner).optional().meta({ description: 'With `nameservers`: the keys of the child zone.' }),
}

/** In the normal form: addresses and names as they are compared, lists sorted without duplicates, no field undefined. */
export const target = z.object(targetFields)
export type Target = Readonly<z.infer<typeof target>>

/** A change of a target. In the first form, what is absent stays, and null removes a field. */
export type TargetChange = Omit<Target, AddressField> & { readonly [Field in AddressField]?: string | null | undefined }

export const ADDRESS_FIELDS = ['loadBalancerIP', 'loadBalancerIPv6', 'consoleLoadBalancerIP'] as const
type AddressField = (typeof ADDRESS_FIELDS)[number]
const FORMS: readonly (readonly (keyof Target)[])[] = [ADDRESS_FIELDS, ['loadBalancerHostname'], ['nameservers', 'ds']]
export const TARGET_FIELDS = FORMS.flat()

/** A target in one line. */
export const formatTarget = (value: Target): string =>
  [
    value.loadBalancerIP,
    value.loadBalancerIPv6,
    value.consoleLoadBalancerIP && `console ${value.consoleLoadBalancerIP}`,
    value.loadBalancerHostname,
    ...(value.nameservers ?? []),
    ...(value.ds ?? []).map(key => `DS ${formatDs(key)}`),
  ]
    .filter(part => part !== undefined)
    .join(', ')

/** The part of `fields` that is about the target, and the rest. */
export const splitTarget = <Fields extends TargetChange>(fields: Fields) => {
  const isTarget = ([key, value]: [string, unknown]) =>
    TARGET_FIELDS.some(field => field === key) && value !== undefined
  const entries = Object.entries(fields)
  return {
    target: Object.fromEntries(entries.filter(isTarget)) as Pick<Fields, keyof Target & keyof Fields>,
    rest: Object.fromEntries(entries.filter(([key]) => !TARGET_FIELDS.some(field => field === key))) as Omit<
      Fields,
      keyof Target
    >,
  }
}

const hostnameRule = rule('invalid-lb-hostname', 'loadBalancerHostname must be a host name such as lb.example.com.')
const nameserversRule = rule(
  'invalid-nameservers',
  'nameservers must be a list of 2 to 8 different host names such as ns1.example.com.',
)
const dsRule = rule(
  'invalid-ds',
  'ds must be a list of 1 to 8 records with keyTag, algorithm, digestType and digest, in the numbers of RFC 4034 and hexadecimal.',
)

/** By type: SHA-1, SHA-256, GOST R 34.11-94, SHA-384. */
const DIGEST_LENGTHS: Readonly<Record<number, number>> = { 1: 40, 2: 64, 3: 64, 4: 96 }

const number = (min: number, max: number) => z.int(dsRule).min(min, dsRule).max(max, dsRule)
const dsRequest = z
  .object(
    {
      keyTag: number(0, 65_535),
      algorithm: number(1, 255),
      digestType: number(1, 255),
      digest: z
        .string(dsRule)
        .regex(/^(?:[0-9A-Fa-f]{2}){1,64}$/, dsRule)
        .overwrite(text => text.toUpperCase()),
    },
    dsRule,
  )
  .refine(({ digestType, digest }) => digest.length === (DIGEST_LENGTHS[digestType] ?? digest.length), dsRule)
  .meta({ id: 'DelegationSignerRequest' })

const unique = <Item>(items: readonly Item[], toText: (item: Item) => string): Item[] =>
  Array.from(new Map(items.map(item => [toText(item), item])))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, item]) => item)

const hostname = createFqdn(hostnameRule).meta({ example: 'lb.example.com' })
const nameservers = z
  .array(createFqdn(nameserversRule), nameserversRule)
  .min(2, nameserversRule)
  .max(8, nameserversRule)
  .overwrite(names => unique(names, name => name))
  .refine(names => names.length > 1, nameserversRule)
  .meta({ example: ['ns1.example.com', 'ns2.example.com'] })
const ds = z
  .array(dsRequest, dsRule)
  .min(1, dsRule)
  .max(8, dsRule)
  .overwrite(keys => unique(keys, formatDs))

/** The fields of a target in a request. */
export const createTargetFields = (acceptsLoopback: boolean) => ({
  loadBalancerIP: createLoadBalancerIP(acceptsLoopback).optional(),
  loadBalancerIPv6: loadBalancerIPv6.optional(),
  consoleLoadBalancerIP: createLoadBalancerIP(acceptsLoopback, 'consoleLoadBalancerIP').optional(),
  loadBalancerHostname: absentIfNull(hostname.optional()).meta({
    description: 'A host name instead of an address: the records are CNAMEs.',
  }),
  nameservers: absentIfNull(nameservers.optional()).meta({
    description: 'Name servers instead of an address: the name is delegated to them.',
  }),
  ds: absentIfNull(ds.optional()).meta({ description: 'Only with `nameservers`.' }),
})

const isGiven = (fields: TargetChange) => (field: keyof Target) => (fields[field] ?? undefined) !== undefined

/** What is wrong with the fields of a target beside each other, whose values are valid. */
const findViolation = (fields: TargetChange, needsTarget: boolean) => {
  const has = isGiven(fields)
  const [form, other] = FORMS.filter(names => names.some(has))
  if (other)
    return violation(
      'invalid-target',
      `${form?.find(has)} and ${other.find(has)} exclude each other; send one of them.`,
    )
  if (!form) {
    return needsTarget
      ? violation('missing-lb-ip', 'loadBalancerIP is required: the IPv4 address for the records, or another target.')
      : undefined
  }
  if (has('ds') && !has('nameservers')) return violation('invalid-nameservers', 'nameservers is required with ds.')
  const isPartial = form === ADDRESS_FIELDS && !has('loadBalancerIP') && !has('loadBalancerIPv6')
  return needsTarget && isPartial
    ? violation('invalid-target', 'consoleLoadBalancerIP needs loadBalancerIP or loadBalancerIPv6; send one of them.')
    : undefined
}

/**
 * The rules between the fields of a target, for the object that has them. They are decided with the fields, and their error
 * comes before that of the FQDN.
 */
export const createTargetCheck = (needsTarget: boolean) => {
  const check = z.check<TargetChange>(({ value, issues }) => {
    const paths = issues.map(({ path }) => path?.[0])
    if (typeof value !== 'object' || value === null || TARGET_FIELDS.some(field => paths.includes(field))) return
    const found = findViolation(value, needsTarget)
    const at = paths.indexOf('sovereignFQDN')
    if (found) issues.splice(at < 0 ? issues.length : at, 0, { ...found, path: ['loadBalancerIP'] })
  })
  check._zod.def.when = () => true
  return check
}
