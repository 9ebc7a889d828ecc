import * as z from 'zod'
import { poolDomain } from './fields.ts'

/** Every export starts with it. Later versions of the format have another number. */
export const exportHeader = z
  .object({
    type: z.literal('header'),
    format: z.literal('pool-allocation-export'),
    version: z.literal(1),
    schema: z.int().min(1).meta({ description: 'The version of the database schema. An older build rejects it.' }),
  })
  .meta({ id: 'ExportHeader' })

/** A row of a table, as Postgres writes it in JSON (`to_jsonb`). */
export const exportRow = z
  .object({ type: z.literal('row'), table: z.string(), row: z.record(z.string(), z.unknown()) })
  .meta({ id: 'ExportRow' })

/** The last number that a sequence has given. */
export const exportSequence = z
  .object({ type: z.literal('sequence'), name: z.string(), value: z.int().min(0) })
  .meta({ id: 'ExportSequence' })

/** Without it, the export is truncated. */
export const exportEnd = z
  .object({ type: z.literal('end'), rows: z.int().min(0).meta({ description: 'The number of row lines.' }) })
  .meta({ id: 'ExportEnd' })

/** One line of an export: JSON without line breaks. The header comes first, then rows and sequences, then the end. */
export const exportLine = z
  .discriminatedUnion('type', [exportHeader, exportRow, exportSequence, exportEnd])
  .meta({ id: 'ExportLine' })
export type ExportLine = z.infer<typeof exportLine>

export const skippedName = z
  .object({ subdomain: z.string(), detail: z.string() })
  .meta({ id: 'SkippedName', description: 'A name that cannot be moved to the pool.' })
export type SkippedName = z.infer<typeof skippedName>

export const importQuery = z
  .object({
    from: poolDomain.optional().meta({ description: 'Move the names of this pool only. Requires `to`.' }),
    to: poolDomain.optional().meta({ description: 'The managed pool that they are moved to. Requires `from`.' }),
    dryRun: z
      .enum(['true', 'false'])
      .optional()
      .meta({ description: '`true`: checks everything and changes nothing.' }),
  })
  .refine(({ from, to }) => (from === undefined) === (to === undefined), {
    path: ['to'],
    message: 'from and to belong to each other: send both or neither.',
  })

export const importResponse = z
  .object({
    dryRun: z.boolean(),
    rows: z.record(z.string(), z.int()).meta({ description: 'The number of inserted rows by table.' }),
    stoppedZones: z.array(z.string()).meta({
      description: 'Zones to which nothing is written until `POST /api/v1/pool/{domain}/resume` decides.',
    }),
    skipped: z.array(skippedName).meta({ description: 'The first 1,000, by name. Always empty without `from`.' }),
    skippedCount: z.int(),
  })
  .meta({ id: 'ImportResponse' })
export type ImportResponse = z.infer<typeof importResponse>
