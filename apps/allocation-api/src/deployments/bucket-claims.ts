import type { Sql } from '@pool/database/client'
import { timeSql } from '@pool/database/time-sql'
import type { PendingQuery, Row } from 'postgres'

type Fragment = PendingQuery<Row[]>

/**
 * The parts of statements over bucket_claims. A claim is provisional until the bucket may exist. A claim of another
 * lineage violates `bucket_claims_pkey`, which rejects the whole statement.
 */
export const bucketClaimSql = (sql: Sql) => {
  const { now } = timeSql(sql)
  return {
    /** The only place that claims a bucket. `lineages` has at most one row, with `lineage_id` and `sovereign_fqdn`. */
    claim: (bucket: string | null, lineages: Fragment) => sql`
      insert into bucket_claims (bucket, lineage_id, sovereign_fqdn, claimed_at)
      select ${bucket}, input.lineage_id, input.sovereign_fqdn, ${now} from ${lineages} input
      where ${bucket}::text is not null and not exists (
        select from bucket_claims c where c.bucket = ${bucket} and c.lineage_id = input.lineage_id
      )`,
    /** `lineages` has the column `id`. */
    makePermanent: (lineages: Fragment) => sql`
      update bucket_claims c set is_permanent = true from ${lineages} input where c.lineage_id = input.id`,
    /** `lineages` has the column `lineage_id`. */
    dropProvisional: (lineages: Fragment) => sql`
      delete from bucket_claims c using ${lineages} input where c.lineage_id = input.lineage_id and not c.is_permanent`,
  }
}
