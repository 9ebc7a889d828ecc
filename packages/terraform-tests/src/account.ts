import { createHash } from 'node:crypto'
import { ApiError } from './resource.ts'
import type { Attributes } from './schema.ts'

export interface Upload {
  readonly content: string
  readonly bindings: readonly Attributes[]
  readonly migration: { oldTag: string; newTag: string; newClasses: readonly string[] } | null
}

interface Script {
  content: string
  bindings: readonly Attributes[]
  migrationTag: string
  classes: ReadonlySet<string>
  uploads: number
}

/** A Cloudflare account in memory: the operations of four resources, and the rejections of the API. */
export class Account {
  readonly namespaces = new Map<string, string>()
  readonly scripts = new Map<string, Script>()
  readonly subdomains = new Map<string, { enabled: boolean; previews: boolean }>()
  readonly domains = new Map<string, { hostname: string; zoneId: string; service: string }>()
  #lastId = 0

  /** 32 hexadecimal digits, as in Cloudflare. */
  newId(kind: string): string {
    this.#lastId += 1
    return createHash('md5').update(`${kind} ${this.#lastId}`).digest('hex')
  }

  upload(name: string, { content, bindings, migration }: Upload): Script {
    const previous = this.scripts.get(name)
    const tag = previous?.migrationTag ?? ''
    if (migration !== null && migration.oldTag !== tag) {
      throw new ApiError(
        '412 Precondition Failed (10079)',
        `the migration starts from tag '${migration.oldTag}', but the script is at tag '${tag}'`,
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
      classes,
      migrationTag: migration?.newTag ?? tag,
      uploads: (previous?.uploads ?? 0) + 1,
    }
    this.scripts.set(name, script)
    return script
  }

  script(name: string): Script {
    const script = this.scripts.get(name)
    if (!script) throw new ApiError('404 Not Found', `no script '${name}'`)
    return script
  }
}
