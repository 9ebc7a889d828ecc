import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'smol-toml'
import * as z from 'zod'

/** The settings that the local run uses. The deployment uses the others, which Wrangler's own schema lists. */
const wranglerConfig = z.looseObject({
  name: z.string(),
  main: z.string(),
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()).default([]),
  kv_namespaces: z.array(z.looseObject({ binding: z.string(), id: z.string().optional() })).default([]),
  durable_objects: z
    .looseObject({
      bindings: z.array(
        z.looseObject({ name: z.string(), class_name: z.string(), script_name: z.string().optional() }),
      ),
    })
    .default({ bindings: [] }),
  migrations: z.array(z.looseObject({ new_sqlite_classes: z.array(z.string()).default([]) })).default([]),
  vars: z.record(z.string(), z.json()).default({}),
})

/** Wrangler only warns about a misspelt setting, and deploys without it. */
const findUnknownSettings = (config: object): readonly string[] => {
  const schema = new URL('../config-schema.json', import.meta.resolve('wrangler'))
  const { properties } = JSON.parse(readFileSync(schema, 'utf8')).definitions.RawConfig
  return Object.keys(config).filter(key => !Object.hasOwn(properties, key))
}

const parseToml = (path: string): unknown => {
  try {
    return parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new Error(`${path}: ${error instanceof Error ? error.message : error}`)
  }
}

/**
 * Reads the parts of a wrangler.toml that our worker uses. Importing Wrangler instead would double the memory of the local
 * run and take more than half a second. Bindings that only a deployment has are absent in the local run, so the worker has
 * to do without them. A setting that Wrangler does not know is an error. The test compares the result with Wrangler's own.
 */
export const readWranglerConfig = (wranglerToml: string) => {
  const parsed = wranglerConfig.safeParse(parseToml(wranglerToml))
  if (!parsed.success) throw new Error(`${wranglerToml}: ${z.prettifyError(parsed.error)}`)
  const { data } = parsed
  const unknown = findUnknownSettings(data)
  if (unknown.length > 0) {
    throw new Error(`${wranglerToml}: Wrangler has no setting ${unknown.join(', ')}: correct the name, or remove it`)
  }
  const withSqlite = new Set(data.migrations.flatMap(migration => migration.new_sqlite_classes))
  return {
    main: resolve(dirname(wranglerToml), data.main),
    options: {
      name: data.name,
      rootPath: dirname(wranglerToml),
      compatibilityDate: data.compatibility_date,
      compatibilityFlags: data.compatibility_flags,
      bindings: data.vars,
      kvNamespaces: Object.fromEntries(data.kv_namespaces.map(({ binding, id }) => [binding, { id: id ?? binding }])),
      durableObjects: Object.fromEntries(
        data.durable_objects.bindings
          .filter(({ script_name }) => script_name === undefined)
          .map(({ name, class_name }) => [name, { className: class_name, useSQLite: withSqlite.has(class_name) }]),
      ),
    },
  }
}
