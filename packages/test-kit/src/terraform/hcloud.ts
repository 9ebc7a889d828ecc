import { createHash } from 'node:crypto'
import { ApiError, type Provider, type ResourceBehavior } from './resource.ts'
import { type Attribute, type Attributes, isText, type Schema, Unknown } from './schema.ts'

/**
 * What examples/hetzner uses of the schemas of hetznercloud/hcloud 1.68.0 (`terraform providers schema -json`). Which changes
 * replace a resource is from the source of that version.
 */

const toAttribute = (flags: string, type: Attribute['type']): Attribute => ({
  type,
  ...(flags.includes('!') && { required: true }),
  ...(flags.includes('?') && { optional: true }),
  ...(flags.includes('=') && { computed: true, keepsValue: true }),
  ...(flags.includes('*') && { replaces: true }),
})

const TYPES: Readonly<Record<string, Attribute['type']>> = {
  n: 'number',
  b: 'bool',
  map: ['map', 'string'],
  numbers: ['set', 'number'],
  texts: ['set', 'string'],
}

/** `!`: required, `?`: optional, `=`: computed, `*`: a change replaces the resource; then the type, if it is not a string. */
const parse = (text: string): Schema =>
  Object.fromEntries(
    Array.from(text.matchAll(/(\w+)([!?=*]+)(\w*)/g), ([, name = '', flags = '', type = '']) => [
      name,
      toAttribute(flags, TYPES[type] ?? 'string'),
    ]),
  )

const rule = parse('direction! protocol! port? source_ips?texts')

export const hcloudSchemas: Readonly<Record<string, Schema>> = {
  hcloud_firewall: {
    ...parse('id?= name! labels?=map'),
    rule: { type: { nesting: 'blocks', attributes: rule }, optional: true },
  },
  hcloud_load_balancer: parse('id?= name! labels?=map location?=* load_balancer_type! ipv4='),
  hcloud_load_balancer_network: parse('id= load_balancer_id!*n subnet_id?* ip?='),
  hcloud_load_balancer_service: parse('id?= load_balancer_id!* protocol! listen_port?=n destination_port?=n'),
  hcloud_load_balancer_target: parse('id?= type! load_balancer_id!*n server_id?*n use_private_ip?=b'),
  hcloud_network: parse('id?= name! labels?map ip_range!*'),
  hcloud_network_subnet: parse('id?= network_id!*n type!* network_zone!* ip_range!* gateway='),
  hcloud_server: parse(
    'id?= name! labels?map location?=* server_type! image?=* user_data?* firewall_ids?=numbers ipv4_address=',
  ),
  hcloud_server_network: parse('id= server_id!*n subnet_id?* ip?='),
  hcloud_ssh_key: parse('id= name! public_key!*'),
}

/** A project in memory, by type and id. Names, and public keys, are unique in a project. */
export class HetznerProject {
  readonly resources = new Map<string, Attributes>()
  /** As sent. The state has its hash. */
  readonly userData: string[] = []
  #lastId = 0

  behaviorOf(type: string): ResourceBehavior {
    const toKey = (resourceId: unknown) => `${type} ${resourceId}`
    return {
      write: (planned, prior) => {
        if (prior === null) this.#lastId += 1
        const number = prior === null ? this.#lastId : Number(prior.id)
        const key = toKey(number)
        for (const unique of ['name', 'public_key']) {
          const value = planned[unique]
          const isTaken = [...this.resources].some(
            ([other, found]) => other !== key && other.startsWith(`${type} `) && value && found[unique] === value,
          )
          if (isTaken) throw new ApiError('409 Conflict', `${unique} is already used (uniqueness_error)`)
        }
        const fill = (attribute: string) => (attribute.startsWith('ip') ? `203.0.113.${number}` : String(number))
        const filled = Object.entries(planned).map(([attribute, value]) => [
          attribute,
          value instanceof Unknown ? fill(attribute) : value,
        ])
        const created: Attributes = Object.fromEntries(filled)
        if (isText(created.user_data) && prior === null) {
          this.userData.push(created.user_data)
          created.user_data = createHash('sha1').update(created.user_data).digest('base64')
        }
        this.resources.set(key, created)
        return created
      },
      read: state => this.resources.get(toKey(state.id)) ?? null,
      remove: state => void this.resources.delete(toKey(state.id)),
      import: resourceId => ({ id: resourceId }),
    }
  }
}

/** The provider with one project. */
export const hcloud = (project: HetznerProject): Provider => ({
  name: 'Hetzner Cloud',
  source: 'hetznercloud/hcloud',
  schema: { token: { type: 'string', optional: true, sensitive: true } },
  // Its SDK stores the hash of the user data.
  hasLegacyTypes: true,
  resources: Object.fromEntries(
    Object.entries(hcloudSchemas).map(([type, schema]) => [type, { schema, behavior: project.behaviorOf(type) }]),
  ),
})
