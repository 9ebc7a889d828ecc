import type { BucketClaim } from '@pool/contract'
import { client } from '../api/client.ts'
import type { Column } from '../ui/data-table.tsx'
import { ConfirmDialog, useDialog } from '../ui/dialog.tsx'
import { Sentences } from '../ui/facts.tsx'
import { EmptyState, useToast } from '../ui/feedback.tsx'
import { ListPanel, usePagedList } from '../ui/list-panel.tsx'
import { Link } from '../ui/router.tsx'
import { Page } from '../ui/shell.tsx'
import { Time } from '../ui/time.tsx'

const PAGE_SIZE = 50

const createColumns = (onLift: (claim: BucketClaim) => void): readonly Column<BucketClaim>[] => [
  { header: 'Bucket', class: 'name', cell: ({ bucket }) => <code>{bucket}</code> },
  { header: 'FQDN', cell: ({ sovereignFQDN }) => sovereignFQDN },
  {
    header: 'Deployment',
    cell: ({ deploymentId }) =>
      deploymentId ? (
        <Link to={{ page: 'deployment', id: deploymentId }}>{deploymentId.slice(0, 8)}</Link>
      ) : (
        <span class="muted">deleted</span>
      ),
  },
  {
    header: 'Bucket exists',
    cell: ({ isPermanent }) => (isPermanent ? 'possibly' : 'not yet'),
  },
  { header: 'Claimed', cell: ({ claimedAt }) => <Time at={claimedAt} /> },
  {
    header: '',
    class: 'actions-cell',
    cell: claim => (
      <button
        type="button"
        class="plain"
        aria-label={`Lift the claim of ${claim.bucket}`}
        onClick={() => onLift(claim)}
      >
        Lift
      </button>
    ),
  },
]

/** Which deployment has which bucket. */
export const BucketsPage = () => {
  const toast = useToast()
  const buckets = usePagedList((cursor, signal) => client.listBucketClaims({ limit: PAGE_SIZE, cursor }, { signal }), {
    key: '',
    topics: ['deployments'],
  })
  const { open, dialog } = useDialog<BucketClaim>(({ bucket }, close) => (
    <ConfirmDialog
      title={`Lift the claim of ${bucket}`}
      confirmLabel="Lift the claim"
      isDangerous
      onClose={close}
      onConfirm={async () => {
        await client.liftBucketClaim({ bucket })
        toast(`The claim of ${bucket} is lifted.`)
        buckets.reload()
      }}
    >
      <Sentences
        sentences={[
          'Another deployment can derive this bucket afterwards, and another tenant can read what is in it.',
          'The bucket itself is not touched: delete it first, or make sure that its owner no longer needs it.',
          'The service rejects this while infrastructure that uses the bucket may exist.',
        ]}
      />
    </ConfirmDialog>
  ))
  return (
    <Page
      title="Bucket claims"
      lead="A claim reserves a bucket for the tenant of one FQDN, even after the deployment is destroyed."
    >
      <ListPanel
        title="Claims"
        label="Bucket claims"
        list={buckets}
        toRows={page => page.buckets}
        columns={createColumns(open)}
        rowKey={({ bucket }) => bucket}
        unit="claim"
        renderEmpty={() => (
          <EmptyState title="No deployment has claimed a bucket.">
            A deployment with object storage claims the bucket that is named after its FQDN.
          </EmptyState>
        )}
      />
      {dialog}
    </Page>
  )
}
