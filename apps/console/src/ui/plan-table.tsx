import type { PlanRow } from '../domain/record-diff.ts'
import { toVisibleText } from '../domain/visible-text.ts'

interface PlanTableProps {
  readonly label: string
  readonly rows: readonly PlanRow[]
}

/** Changes as a diff: the sign says what is written or deleted, without its colour. */
export const PlanTable = ({ label, rows }: PlanTableProps) => (
  <div class="table-frame">
    <table class="diff" aria-label={label}>
      <thead>
        <tr>
          <th scope="col" class="sign">
            <span class="visually-hidden">Change</span>
          </th>
          <th scope="col">Name</th>
          <th scope="col">Type</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ sign, kind, name, type, text, before }) => (
          <tr key={`${sign} ${name} ${type}`} class={kind}>
            <td class="sign">
              <span class="visually-hidden">{kind}</span>
              <span aria-hidden="true">{sign}</span>
            </td>
            <td class="owner">
              <code>{toVisibleText(name)}</code>
            </td>
            <td class="type">{type}</td>
            <td>
              {before !== undefined && (
                <>
                  <del>
                    <code>{toVisibleText(before)}</code>
                  </del>{' '}
                  →{' '}
                </>
              )}
              {text === '' ? <span class="muted">deleted</span> : <code>{toVisibleText(text)}</code>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)
