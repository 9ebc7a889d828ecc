import type { BucketClaim } from '@pool/contract'
import type { CommandSpec, GroupSpec } from '../command.ts'
import { UsageError } from '../exit-codes.ts'
import type { Column } from '../table.ts'
import { parseCount } from '../values.ts'
import { limitFlag, take, yesFlag } from './flags.ts'
import { LIST_LIMITS } from './names.ts'

const columns: readonly Column<BucketClaim>[] = [
  { header: 'BUCKET', value: ({ bucket }) => bucket, isFirm: true },
  { header: 'FQDN', value: ({ sovereignFQDN }) => sovereignFQDN },
  { header: 'PERMANENT', value: ({ isPermanent }) => (isPermanent ? 'yes' : 'no') },
  { header: 'DEPLOYMENT', value: ({ deploymentId }) => deploymentId },
  { header: 'CLAIMED AT', value: ({ claimedAt }) => claimedAt },
]

const list: CommandSpec = {
  name: 'list',
  summary: 'List the bucket claims',
  description: 'A claim assigns the name of a bucket to the infrastructure of one tenant.',
  flags: [limitFlag],
  examples: ['buckets list', 'buckets list -o ndjson'],
  operations: ['listBucketClaims'],
  async run(session, { flags }) {
    const limit = flags.limit === undefined ? undefined : parseCount(String(flags.limit), '--limit', LIST_LIMITS)
    const api = await session.api()
    await session.output.list(take(api.bucketClaims({}, session.reading), limit), {
      key: 'buckets',
      columns,
      toName: ({ bucket }) => bucket,
      empty: 'No bucket claims.',
    })
    return undefined
  },
}

const BUCKET = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/

const lift: CommandSpec = {
  name: 'lift',
  summary: 'Lift a bucket claim, so that another deployment can derive this bucket',
  description: 'The bucket itself is not touched: delete it, or make sure that its owner no longer needs it, first.',
  arguments: [{ name: 'BUCKET', description: 'the name of the bucket' }],
  flags: [yesFlag],
  examples: ['buckets lift catalyst-acme-pool-example'],
  operations: ['liftBucketClaim'],
  async run(session, { args, flags }) {
    const bucket = String(args[0])
    if (!BUCKET.test(bucket)) {
      throw new UsageError(
        `BUCKET ${JSON.stringify(bucket)} is not a bucket name; "poolctl buckets list" shows the names.`,
      )
    }
    await session.confirm(`Lift the claim of the bucket ${bucket}?`, bucket, flags.yes === true)
    const api = await session.api()
    await session.write(options => api.liftBucketClaim({ bucket }, options))
    await session.output.done({ bucket, lifted: true }, `The claim of ${bucket} is lifted.`, bucket)
    return undefined
  },
}

export const bucketCommands: GroupSpec = {
  name: 'buckets',
  summary: 'Bucket claims of deployments',
  commands: [list, lift],
}
