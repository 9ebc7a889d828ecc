import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type DataSource, parseImportId, type ResourceBehavior } from '@pool/test-kit/terraform/resource.ts'
import { type Attributes, isObject, isText, type Schema, Unknown, type Value } from '@pool/test-kit/terraform/schema.ts'
import type { Account, Upload } from './account.ts'

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const getBindings = (state: Attributes): Attributes[] =>
  Array.isArray(state.bindings) ? state.bindings.filter(isObject) : []

export function parseMigration(migrations: Value | undefined): Upload['migration'] {
  if (!isObject(migrations)) return null
  const { old_tag, new_tag, new_sqlite_classes } = migrations
  const newClasses = Array.isArray(new_sqlite_classes) ? new_sqlite_classes.filter(isText) : []
  return { oldTag: isText(old_tag) ? old_tag : '', newTag: isText(new_tag) ? new_tag : '', newClasses }
}

/** What the API reports about a script, beside its settings. */
export function readMetadata(account: Account, name: string): Attributes {
  const { content, classes, migrationTag, uploads } = account.script(name)
  return {
    created_on: '2026-11-21T09:00:00Z',
    etag: sha256(content),
    handlers: ['fetch'],
    has_assets: false,
    has_modules: true,
    last_deployed_from: 'terraform',
    migration_tag: migrationTag || null,
    modified_on: `2026-11-21T09:00:${String(uploads).padStart(2, '0')}Z`,
    named_handlers: [...classes].map(name => ({ name, handlers: ['class'] })),
    usage_model: 'standard',
  }
}

/** Upload, refresh, deletion and import of a script, after the source of the real provider (5.19.1). */
export function scriptResource(account: Account, directory: string): ResourceBehavior {
  const readContent = ({ content, content_file }: Attributes): string =>
    isText(content_file) ? readFileSync(resolve(directory, content_file), 'utf8') : String(content)

  return {
    async write(planned, _prior, { migrations = null }) {
      const name = String(planned.script_name)
      const withObjectIds = (toId: (className: Value | undefined) => Value) =>
        getBindings(planned).map(binding => ({
          ...binding,
          namespace_id:
            binding.namespace_id instanceof Unknown ? toId(binding.class_name) : (binding.namespace_id ?? null),
        })) as Attributes[]
      // The response of an upload has no bindings, so the state has no id of a namespace of objects.
      const bindings = withObjectIds(() => null)
      await account.upload(name, {
        content: readContent(planned),
        bindings: withObjectIds(className => toObjectNamespaceId(name, className)),
        // The provider reads migrations from the configuration, because a refresh cannot find them.
        migration: parseMigration(migrations),
        observability: isObject(planned.observability) ? planned.observability : null,
      })
      const uploadResult: Attributes = {
        ...readMetadata(account, name),
        annotations: { workers_message: null, workers_tag: null, workers_triggered_by: 'upload' },
        id: name,
        startup_time_ms: 7,
      }
      const known = Object.entries(planned).map(([attribute, value]) => [
        attribute,
        value instanceof Unknown ? (uploadResult[attribute] ?? null) : value,
      ])
      return { ...Object.fromEntries(known), bindings, migrations }
    },

    read(state) {
      const name = String(state.script_name)
      const script = account.scripts.get(name)
      if (!script) return null
      const previous = getBindings(state)
      const isSame = (left: Attributes, right: Attributes) => left.name === right.name && left.type === right.type
      const isSecret = ({ type }: Attributes) => type === 'secret_text'
      return {
        ...state,
        ...readMetadata(account, name),
        // The provider keeps known bindings as they are in the state, and the API never returns a secret: a refresh shows
        // only that a secret is missing, or that there is another binding that is not a secret.
        bindings: [
          ...previous.filter(known => !isSecret(known) || script.bindings.some(binding => isSame(known, binding))),
          ...script.bindings.filter(binding => !isSecret(binding) && !previous.some(known => isSame(known, binding))),
        ],
        observability: merge(state.observability ?? null, account.readObservability(name)),
        content: isText(state.content_file) ? null : script.content,
        content_sha256: isText(state.content_sha256) ? sha256(script.content) : null,
      }
    },

    remove: ({ script_name }) => account.deleteScript(String(script_name)),

    import(id) {
      const parts = parseImportId(id, 'account_id', 'script_name')
      return { ...parts, id: parts.script_name ?? null }
    },

    validate(config) {
      const { content = null, content_sha256 = null, content_file = null, assets = null } = config
      if (content === null && content_file === null && assets === null) {
        const detail = 'At least one of these attributes must be configured: [content,content_file,assets]'
        return { attribute: 'content', summary: 'Missing Attribute Configuration', detail }
      }
      if (content !== null && content_file !== null) {
        const detail = 'These attributes cannot be configured together: [content,content_file]'
        return { attribute: 'content', summary: 'Invalid Attribute Combination', detail }
      }
      if (content_file !== null && content_sha256 === null) {
        const detail = 'Attribute "content_sha256" must be specified when "content_file" is specified'
        return { attribute: 'content_file', summary: 'Invalid Attribute Combination', detail }
      }
      if (!isText(content_sha256) || !isText(content_file)) return null
      if (content_sha256 === sha256(readContent(config))) return null
      return { attribute: 'content_sha256', detail: `content_sha256 does not match ${content_file}` }
    },
  }
}

/** The list of the scripts of the account. */
export const scriptsDataSource = (account: Account, schema: Schema): DataSource => ({
  schema,
  read: config => ({
    ...config,
    result: [...account.scripts.keys()].map(id => ({
      ...readMetadata(account, id),
      id,
      observability: account.readObservability(id),
    })),
  }),
})

/** The values of `found` over those of `known`, as a refresh combines them: what the API does not return is kept. */
function merge(known: Value, found: Value): Value {
  if (found === null) return known
  if (!isObject(known) || !isObject(found)) return found
  const names = [...new Set([...Object.keys(known), ...Object.keys(found)])]
  return Object.fromEntries(names.map(name => [name, merge(known[name] ?? null, found[name] ?? null)]))
}

/** The id of a Durable Object namespace. It is stable as long as the script exists. */
export const toObjectNamespaceId = (script: string, className: Value | undefined): string =>
  sha256(`${script} ${className}`).slice(0, 32)
