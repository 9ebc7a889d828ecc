import type { BucketClaim } from '@pool/contract'
import type { GroupSpec } from '../command.ts'
import { UsageError } from '../exit-codes.ts'
import type { Column } from '../table.ts'
import { yesFlag } from './flags.ts'
import { listCall, oneCall } from './one-call.ts'

const columns: readonly Column<BucketClaim>[] = [
  { header: 'BUCKET', value: ({ bucket }) => bucket, isFirm: true },
  { header: 'FQDN', value: ({ sovereignFQDN }) => sovereignFQDN },
  { header: 'PERMANENT', value: ({ isPermanent }) => (isPermanent ? 'yes' : 'no') },
  { header: 'DEPLOYMENT', value: ({ deploymentId }) => deploymentId },
  { header: 'CLAIMED AT', value: ({ claimedAt }) => claimedAt },
]

const list = listCall({
  name: 'list',
  summary: 'List the bucket claims',
  description: 'A claim assigns the name of a bucket to the infrastructure of one tenant.',
  examples: ['buckets list', 'buckets list -o ndjson'],
  operation: 'listBucketClaims',
  query: () => ({}),
  items: (api, query, options) => api.bucketClaims(query, options),
  view: () => ({ key: 'buckets', columns, toName: ({ bucket }) => bucket, empty: 'No bucket claims.' }),
})

const BUCKET = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/

const lift = oneCall({
  name: 'lift',
  summary: 'Lift a bucket claim, so that another deployment can derive this bucket',
  description: 'The bucket itself is not touched: delete it, or make sure that its owner no longer needs it, first.',
  arguments: [{ name: 'BUCKET', description: 'the name of the bucket' }],
  flags: [yesFlag],
  examples: ['buckets lift catalyst-acme-pool-example'],
  operation: 'liftBucketClaim',
  params: ({ args }) => {
    const bucket = String(args[0])
    if (BUCKET.test(bucket)) return { bucket }
    throw new UsageError(
      `BUCKET ${JSON.stringify(bucket)} is not a bucket name; "poolctl buckets list" shows the names.`,
    )
  },
  confirm: ({ bucket }) => ({ question: `Lift the claim of the bucket ${bucket}?`, expected: bucket }),
  show: (session, _, { bucket }) =>
    session.output.done({ bucket, lifted: true }, `The claim of ${bucket} is lifted.`, bucket),
})

export const bucketCommands: GroupSpec = {
  name: 'buckets',
  summary: 'Bucket claims of deployments',
  commands: [list, lift],
}
