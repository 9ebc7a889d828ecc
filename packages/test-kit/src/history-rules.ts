export interface RecordHistoryEntry {
  readonly subdomain: string
  readonly event: string
  readonly from: string
  readonly detail: string | null
}

/** The history has the cause of a failure as text only. */
const toCause = (detail: string | null): 'provider' | 'zone' | 'rejected' | 'foreign-record' => {
  if (/^(A record of type|Another zone at)/.test(detail ?? '')) return 'foreign-record'
  if (/^(The DNS provider rejected|Of an earlier holder)/.test(detail ?? '')) return 'rejected'
  return /^\[zone\]|serial conflict|last two responses|is incomplete|has no domain|does not serve|before the last write|no room|did not get to|refuses (every )?change/.test(
    detail ?? '',
  )
    ? 'zone'
    : 'provider'
}

/**
 * Errors in the history of one name, oldest first, after convergence. The event of a zone sync may follow the event of a call
 * that was made during the sync, so the rules compare counts up to each row.
 */
export const findHistoryErrors = (rows: readonly RecordHistoryEntry[], isObstructed: boolean): string[] => {
  const faults: string[] = []
  const count = { committed: 0, changed: 0, published: 0, left: 0, removed: 0, withdrawn: 0 }
  let isSettled = true
  rows.forEach(({ event, from, detail }, i) => {
    const before = rows[i - 1]
    if (event === 'committed' || event === 'adopted') count.committed += 1
    if (event === 'orphan-removed') count.removed += 1
    if (['updated', 'republished', 'records-changed'].includes(event)) count.changed += 1
    if (event === 'released' && from === 'active') count.left += 1
    if (event === 'published') count.published += 1
    if (event === 'withdrawn') count.withdrawn += 1
    if (event === 'published' && count.published > count.committed + count.changed)
      faults.push('published without a commit or a change')
    if (event === 'withdrawn' && count.withdrawn > count.left + count.removed)
      faults.push('withdrawn without a release')
    if (event === 'repaired' && count.published + count.withdrawn === 0)
      faults.push('repaired without a published record')
    if (event === 'failing' && before?.event === 'failing' && toCause(detail) === toCause(before.detail))
      faults.push(`failing twice: ${before.detail} / ${detail}`)
    const isChange = ['committed', 'adopted', 'orphan-removed', 'updated', 'republished', 'records-changed'].includes(
      event,
    )
    if (isChange || (event === 'released' && from === 'active')) isSettled = false
    if (event === 'published' && count.committed > count.left) isSettled = true
    if (event === 'withdrawn' && count.committed === count.left) isSettled = true
    if (event === 'failing') isSettled = false
    if (event === 'repaired') isSettled = true
  })
  if (!isSettled && !isObstructed) faults.push('the last change or failure was not resolved')
  return faults
}
