import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'smol-toml'
import * as z from 'zod'

/** What a start of it in workerd depends on, and by name what only a deployment reads. */
const worker = z.strictObject({
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
})

const parsed = (path: string): unknown => {
  try {
    return parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new Error(`${path}: ${error instanceof Error ? error.message : error}`)
  }
}

/**
 * The worker as a wrangler.toml describes it. Wrangler's own reader brings all of Wrangler: twice the memory, for as long as
 * the worker runs, and more than half a second. So this one knows what ours says, and refuses what it does not know, rather
 * than run another worker than the one that is deployed; local/described.test.ts holds it against Wrangler's.
 */
export const readWranglerConfig = (wranglerToml: string) => {
  const read = worker.safeParse(parsed(wranglerToml))
  if (!read.success) throw new Error(`${wranglerToml}: ${z.prettifyError(read.error)}`)
  const { data } = read
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
