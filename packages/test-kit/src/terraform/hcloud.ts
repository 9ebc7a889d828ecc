import { createHash } from 'node:crypto'
import { ApiError, type Provider, type ResourceBehavior } from './resource.ts'
import { type Attribute, type Attributes, isText, type Schema, Unknown } from './schema.ts'

/**
 * What examples/hetzner uses of the schemas of hetznercloud/hcloud 1.68.0 (`terraform providers schema -json`). Which changes
 * replace a resource is from the source of that version.
 */

const computed = { type: 'string', computed: true, keepsValue: true } as const
const id: Attribute = { type: 'string', optional: true, computed: true, keepsValue: true }
const text = { type: 'string', optional: true } as const
const name: Attribute = { type: 'string', required: true }
const location: Attribute = { ...id, replaces: true }
const labels: Attribute = { type: ['map', 'string'], optional: true }
const computedLabels: Attribute = { ...labels, computed: true }
const parent: Attribute = { type: 'number', required: true, replaces: true }
const port: Attribute = { type: 'number', optional: true, computed: true }

const rule: Schema = {
  direction: { type: 'string', required: true },
  protocol: { type: 'string', required: true },
  port: text,
  source_ips: { type: ['set', 'string'], optional: true },
}

export const hcloudSchemas = {
  hcloud_firewall: {
    id,
    name,
    labels: computedLabels,
    rule: { type: { nesting: 'blocks', attributes: rule }, optional: true },
  },
  hcloud_load_balancer: { id, name, labels: computedLabels, location, load_balancer_type: name, ipv4: computed },
  hcloud_load_balancer_network: {
    id: computed,
    load_balancer_id: parent,
    subnet_id: { ...text, replaces: true },
    ip: id,
  },
  hcloud_load_balancer_service: {
    id,
    load_balancer_id: { ...parent, type: 'string' },
    protocol: name,
    listen_port: port,
    destination_port: port,
  },
  hcloud_load_balancer_target: {
    id,
    type: name,
    load_balancer_id: parent,
    server_id: { type: 'number', optional: true, replaces: true },
    use_private_ip: { type: 'bool', optional: true, computed: true },
  },
  hcloud_network: { id, name, labels, ip_range: { ...name, replaces: true } },
  hcloud_network_subnet: {
    id,
    network_id: parent,
    type: { ...name, replaces: true },
    network_zone: { ...name, replaces: true },
    ip_range: { ...name, replaces: true },
    gateway: computed,
  },
  hcloud_server: {
    id,
    name,
    labels,
    location,
    server_type: name,
    image: location,
    user_data: { ...text, replaces: true },
    firewall_ids: { type: ['set', 'number'], optional: true, computed: true },
    ipv4_address: computed,
  },
  hcloud_server_network: { id: computed, server_id: parent, subnet_id: { ...text, replaces: true }, ip: id },
  hcloud_ssh_key: { id: computed, name, public_key: { ...name, replaces: true } },
} satisfies Readonly<Record<string, Schema>>

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
