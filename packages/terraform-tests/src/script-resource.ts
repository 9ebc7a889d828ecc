import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Account, Upload } from './account.ts'
import { parseImportId, type ResourceBehavior } from './resource.ts'
import { type Attributes, isObject, isText, Unknown, type Value } from './schema.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const getBindings = (state: Attributes): Attributes[] =>
  Array.isArray(state.bindings) ? state.bindings.filter(isObject) : []

function parseMigration(migrations: Value | undefined): Upload['migration'] {
  if (!isObject(migrations)) return null
  const { old_tag, new_tag, new_sqlite_classes } = migrations
  const newClasses = Array.isArray(new_sqlite_classes) ? new_sqlite_classes.filter(isText) : []
  return { oldTag: isText(old_tag) ? old_tag : '', newTag: isText(new_tag) ? new_tag : '', newClasses }
}

export function scriptResource(account: Account, directory: string): ResourceBehavior {
  const readContent = ({ content, content_file }: Attributes): string =>
    isText(content_file) ? readFileSync(resolve(directory, content_file), 'utf8') : String(content)

  const computedAttributes = (name: string): Attributes => {
    const { content, migrationTag, uploads } = account.script(name)
    return {
      id: name,
      etag: sha256(content),
      migration_tag: migrationTag || null,
      created_on: '2026-11-21T09:00:00Z',
      modified_on: `2026-11-21T09:00:${String(uploads).padStart(2, '0')}Z`,
      has_modules: true,
      startup_time_ms: 7,
      usage_model: 'standard',
    }
  }

  return {
    write(planned) {
      const name = String(planned.script_name)
      const bindings = getBindings(planned).map(binding => ({
        ...binding,
        namespace_id:
          binding.namespace_id instanceof Unknown
            ? toObjectNamespaceId(name, binding.class_name)
            : binding.namespace_id,
      })) as Attributes[]
      account.upload(name, { content: readContent(planned), bindings, migration: parseMigration(planned.migrations) })
      return { ...planned, ...computedAttributes(name), bindings }
    },

    read(state) {
      const name = String(state.script_name)
      const script = account.scripts.get(name)
      if (!script) return null
      const previous = getBindings(state)
      // The API never returns a secret: the provider keeps the one in the state and omits unknown ones.
      const bindings = script.bindings.flatMap(binding => {
        if (binding.type !== 'secret_text') return [binding]
        const previousBinding = previous.find(({ name }) => name === binding.name)
        return previousBinding ? [{ ...binding, text: previousBinding.text ?? null }] : []
      })
      return {
        ...state,
        ...computedAttributes(name),
        bindings,
        content: isText(state.content_file) ? null : script.content,
        content_sha256: isText(state.content_sha256) ? sha256(script.content) : null,
      }
    },

    remove: ({ script_name }) => void account.scripts.delete(String(script_name)),

    import(id) {
      const parts = parseImportId(id, 'account_id', 'script_name')
      return { ...parts, id: parts.script_name ?? null }
    },

    validate(config) {
      const { content_sha256, content_file } = config
      if (!isText(content_sha256) || !isText(content_file)) return null
      if (content_sha256 === sha256(readContent(config))) return null
      return { attribute: 'content_sha256', detail: `content_sha256 does not match ${content_file}` }
    },
  }
}

/** The id of a Durable Object namespace. It is stable as long as the script exists. */
const toObjectNamespaceId = (script: string, className: Value | undefined): string =>
  sha256(`${script} ${className}`).slice(0, 32)
