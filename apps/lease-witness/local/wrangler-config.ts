import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'smol-toml'
import * as z from 'zod'

/** The settings that the local run uses. Those that only a deployment uses are accepted and ignored. */
const wranglerConfig = z.strictObject({
  name: z.string(),
  main: z.string(),
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()).default([]),
  kv_namespaces: z.array(z.strictObject({ binding: z.string(), id: z.string() })).default([]),
  durable_objects: z
    .strictObject({ bindings: z.array(z.strictObject({ name: z.string(), class_name: z.string() })) })
    .default({ bindings: [] }),
  migrations: z.array(z.strictObject({ tag: z.string(), new_sqlite_classes: z.array(z.string()) })).default([]),
  vars: z.record(z.string(), z.string()).default({}),
  workers_dev: z.boolean().optional(),
  preview_urls: z.boolean().optional(),
  send_metrics: z.boolean().optional(),
  observability: z.unknown().optional(),
  ratelimits: z.unknown().optional(),
})

const parseToml = (path: string): unknown => {
  try {
    return parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new Error(`${path}: ${error instanceof Error ? error.message : error}`)
  }
}

/**
 * Reads the parts of a wrangler.toml that our worker uses. Importing Wrangler instead would double the memory of the local
 * run and take more than half a second. An unknown setting is an error: the local worker must not differ from the deployed
 * one. The test compares the result with Wrangler's own.
 */
export const readWranglerConfig = (wranglerToml: string) => {
  const parsed = wranglerConfig.safeParse(parseToml(wranglerToml))
  if (!parsed.success) throw new Error(`${wranglerToml}: ${z.prettifyError(parsed.error)}`)
  const { data } = parsed
  const withSqlite = new Set(data.migrations.flatMap(migration => migration.new_sqlite_classes))
  return {
    main: resolve(dirname(wranglerToml), data.main),
    options: {
      name: data.name,
      rootPath: dirname(wranglerToml),
      compatibilityDate: data.compatibility_date,
      compatibilityFlags: data.compatibility_flags,
      bindings: data.vars,
      kvNamespaces: Object.fromEntries(data.kv_namespaces.map(({ binding, id }) => [binding, { id }])),
      durableObjects: Object.fromEntries(
        data.durable_objects.bindings.map(({ name, class_name }) => [
          name,
          { className: class_name, useSQLite: withSqlite.has(class_name) },
        ]),
      ),
    },
  }
}
