import type { RecordsToken } from '@pool/contract'
import { client } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { formatCount } from '../domain/text.ts'
import { ConfirmDialog, useDialog } from '../ui/dialog.tsx'
import { Sentences } from '../ui/facts.tsx'
import { Loaded, useToast } from '../ui/feedback.tsx'
import { Panel } from '../ui/shell.tsx'
import { RelativeTime } from '../ui/time.tsx'

const scopeTexts = { acme: 'certificates', records: 'certificates and records' } as const

/** The tokens with which tools of the tenant set records below the name. An operator can end each. */
export const NameTokensPanel = ({ pool, subdomain }: { readonly pool: string; readonly subdomain: string }) => {
  const toast = useToast()
  const tokens = useResource(signal => client.listTokens({ domain: pool, sub: subdomain }, { signal }), {
    key: 'tokens',
    topics: ['names'],
  })
  const { open, dialog } = useDialog<RecordsToken>(({ id, owner }, close) => (
    <ConfirmDialog
      title={`Revoke the token ${id.slice(0, 8)}`}
      confirmLabel="Revoke"
      isDangerous
      onClose={close}
      onConfirm={async () => {
        await client.deleteToken({ domain: pool, subdomain, id })
        toast(`The token ${id.slice(0, 8)} is revoked.`)
        tokens.reload()
      }}
    >
      <Sentences
        sentences={[
          'Whoever has the token can set no more records with it, immediately.',
          `The records of the owner ${owner} stay. To remove them too, use poolctl records tokens delete --records.`,
        ]}
      />
    </ConfirmDialog>
  ))
  return (
    <Panel title="Tokens for records">
      <Loaded resource={tokens}>
        {({ tokens: list }) =>
          list.length === 0 ? (
            <p class="muted">No tool of the tenant can set records below the name.</p>
          ) : (
            <table aria-label={formatCount(list.length, 'token')}>
              <tbody>
                {list.map(token => (
                  <tr key={token.id}>
                    <td>
                      <code>{token.id.slice(0, 8)}</code> for {scopeTexts[token.scope]}, owner{' '}
                      <code>{token.owner}</code>
                      <div class="muted">
                        minted <RelativeTime at={token.createdAt} />
                        {token.expiresAt && (
                          <>
                            , expires <RelativeTime at={token.expiresAt} />
                          </>
                        )}
                        {token.lastUsedAt ? `, last used on ${token.lastUsedAt}` : ', never used'}
                      </div>
                    </td>
                    <td class="actions-cell">
                      <button
                        type="button"
                        class="plain"
                        aria-label={`Revoke the token ${token.id.slice(0, 8)}`}
                        onClick={() => open(token)}
                      >
                        Revoke
                      </button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Loaded>
      {dialog}
    </Panel>
  )
}
