import { createHash } from 'node:crypto'
import { ApiError } from '@pool/test-kit/terraform/resource.ts'
import { type Attributes, isObject, type Value } from '@pool/test-kit/terraform/schema.ts'

export interface Upload {
  readonly content: string
  readonly bindings: readonly Attributes[]
  readonly migration: { oldTag: string; newTag: string; newClasses: readonly string[] } | null
  /** As sent, without what the API adds. Default: none, and no logs. */
  readonly observability?: Attributes | null
  /** Default: that of wrangler.toml. */
  readonly compatibility?: Compatibility
}

export interface Compatibility {
  readonly date: string
  readonly flags: readonly string[]
}

interface Script {
  content: string
  bindings: readonly Attributes[]
  observability: Attributes | null
  compatibility: Compatibility
  migrationTag: string
  classes: ReadonlySet<string>
  uploads: number
}

interface Domain {
  readonly hostname: string
  readonly zoneId: string
  readonly service: string
}

const defaultCompatibility: Compatibility = { date: '2026-05-01', flags: ['enable_request_signal'] }

interface AccountOptions {
  /** Whether the settings of a script contain `traces` even if the upload did not. Both were reported for the real API. */
  readonly reportsTraces?: boolean
  /** Called after an upload was accepted, with the name of the script. */
  deploy?(script: string, upload: Upload): Promise<void>
}

/** A Cloudflare account in memory: the operations of four resources, and the rejections of the API. */
export class Account {
  readonly namespaces = new Map<string, string>()
  readonly scripts = new Map<string, Script>()
  readonly subdomains = new Map<string, { enabled: boolean; previews: boolean }>()
  readonly domains = new Map<string, Domain>()
  /** Whether the token may not edit the zone of a custom domain. */
  rejectsDomains = false
  readonly #options: AccountOptions
  #lastId = 0

  constructor(options: AccountOptions = {}) {
    this.#options = options
  }

  /** 32 hexadecimal digits, as in Cloudflare. */
  newId(kind: string): string {
    this.#lastId += 1
    return createHash('md5').update(`${kind} ${this.#lastId}`).digest('hex')
  }

  async upload(name: string, upload: Upload): Promise<Script> {
    const { content, bindings, migration, observability = null, compatibility = defaultCompatibility } = upload
    const previous = this.scripts.get(name)
    const tag = previous?.migrationTag ?? ''
    if (migration !== null && migration.oldTag !== tag) {
      throw new ApiError(
        '412 Precondition Failed (10079)',
        `Actor migration tag precondition failed, got tag '${migration.oldTag}' when expected tag is '${tag}'.`,
      )
    }
    const classes = new Set([...(previous?.classes ?? []), ...(migration?.newClasses ?? [])])
    for (const { type, class_name, namespace_id } of bindings) {
      if (type === 'durable_object_namespace' && !classes.has(String(class_name))) {
        throw new ApiError('400 Bad Request (10061)', `no Durable Objects of a class '${class_name}' in this script`)
      }
      if (type === 'kv_namespace' && !this.namespaces.has(String(namespace_id))) {
        throw new ApiError('400 Bad Request (10041)', `no KV namespace '${namespace_id}'`)
      }
    }
    const script: Script = {
      content,
      bindings,
      observability,
      compatibility,
      classes,
      migrationTag: migration?.newTag ?? tag,
      uploads: (previous?.uploads ?? 0) + 1,
    }
    this.scripts.set(name, script)
    await this.#options.deploy?.(name, upload)
    return script
  }

  script(name: string): Script {
    const script = this.scripts.get(name)
    if (!script) throw new ApiError('404 Not Found (10007)', `no script '${name}'`)
    return script
  }

  /** Its Durable Objects, its addresses and its settings are deleted with it. */
  deleteScript(name: string): void {
    this.scripts.delete(name)
    this.subdomains.delete(name)
    for (const [id, { service }] of this.domains) if (service === name) this.domains.delete(id)
  }

  /** Creates a custom domain, or finds it if it already has this service. Returns its id. */
  putDomain(domain: Domain): string {
    const { hostname, service } = domain
    if (this.rejectsDomains) throw new ApiError('403 Forbidden (10000)', 'Authentication error')
    this.script(service)
    const [id = this.newId('domain'), previous] =
      [...this.domains].find(([, found]) => found.hostname === hostname) ?? []
    if (previous && previous.service !== service) {
      throw new ApiError('409 Conflict (100117)', `${hostname} is already the domain of '${previous.service}'`)
    }
    this.domains.set(id, domain)
    return id
  }

  /** The observability in the settings of a script: what the upload contained, completed with the defaults of the API. */
  readObservability(name: string): Attributes | null {
    const { observability } = this.script(name)
    if (observability === null) return null
    const { enabled, head_sampling_rate, logs, traces } = observability
    const defaults = { head_sampling_rate: 1, persist: true }
    return {
      enabled: enabled ?? false,
      head_sampling_rate: head_sampling_rate ?? 1,
      logs: withDefaults(logs, { enabled: false, invocation_logs: true, ...defaults }),
      ...((isObject(traces) || this.#options.reportsTraces !== false) && {
        traces: withDefaults(traces, { enabled: false, ...defaults }),
      }),
    }
  }
}

function withDefaults(sent: Value | undefined, defaults: Attributes): Attributes {
  const values = isObject(sent) ? Object.entries(sent).filter(([, value]) => value !== null) : []
  return { ...defaults, ...Object.fromEntries(values) }
}
