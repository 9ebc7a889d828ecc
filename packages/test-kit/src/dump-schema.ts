import type { Sql } from '@pool/runtime/database/client'

/**
 * The schema as sorted text from the catalog. Unlike the output of pg_dump, it is the same on every supported version of
 * Postgres.
 */
export const dumpSchema = async (sql: Sql): Promise<string> => {
  const rows = await sql<{ line: string }[]>`
    select format('table %s column %s: %s%s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
        case when a.attcollation <> t.typcollation then ' collate ' || l.collname else '' end,
        case when a.attnotnull then ' not null' else '' end,
        coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), case a.attidentity when 'a' then ' identity' else '' end)
      ) as line
    from pg_attribute a
      join pg_class c on c.oid = a.attrelid and c.relkind = 'r'
      join pg_type t on t.oid = a.atttypid
      left join pg_collation l on l.oid = a.attcollation
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where c.relnamespace = 'public'::regnamespace and a.attnum > 0 and not a.attisdropped
    union all
    select format('table %s constraint %s: %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
    from pg_constraint where connamespace = 'public'::regnamespace and contype in ('c', 'p', 'u', 'f')
    union all
    select format('index %s', pg_get_indexdef(indexrelid))
    from pg_index join pg_class c on c.oid = indexrelid where c.relnamespace = 'public'::regnamespace
    union all
    select format('trigger %s', pg_get_triggerdef(oid)) from pg_trigger where not tgisinternal
    union all
    select format('function %s: %s', oid::regprocedure, regexp_replace(prosrc, '\\s+', ' ', 'g'))
    from pg_proc where pronamespace = 'public'::regnamespace
    union all
    select format('sequence %s %s', relname, format_type(seqtypid, null))
    from pg_sequence join pg_class c on c.oid = seqrelid where c.relnamespace = 'public'::regnamespace
    order by 1`
  return `${rows.map(row => row.line).join('\n')}\n`
}
