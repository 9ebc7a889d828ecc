import { type AllocationOperation, errors, type Operation, operationList } from '@pool/contract'
import { leaseOperations } from '@pool/contract/lease-operations'
import { leaseErrors } from '@pool/contract/lease-problem'

// The tables of docs/reference/api.md, each between its two markers.

export const referenceFile = new URL('../../../docs/reference/api.md', import.meta.url)

const toTable = (header: readonly string[], rows: readonly (readonly string[])[]): string => {
  const [first, ...others] = [header, ...rows].map(cells => `| ${cells.join(' | ')} |`)
  return [first, `|${'---|'.repeat(header.length)}`, ...others].join('\n')
}

/** The statuses of the results, and those of errors that only some operations have. */
const toStatuses = ({ results, responses }: Operation, common: readonly string[]): string => {
  const isOwn = (status: string): boolean =>
    status in results || (responses[Number(status)]?.codes ?? []).some(code => !common.includes(code))
  return Object.keys(responses).filter(isOwn).join(' · ')
}

const toOperations = (
  operations: readonly (Operation & Pick<AllocationOperation, 'listener'>)[],
  common: readonly string[],
): string => {
  const rows = operations
    .filter(({ method }) => method !== 'options')
    .map(operation => {
      const { id, method, path, query, summary, listener } = operation
      const fields = query
        ? `?${Object.keys(query.shape)
            .map(name => `${name}=`)
            .join('&')}`
        : ''
      const note = listener === 'operator' ? ' Operator listener only.' : ''
      return [
        `\`${method.toUpperCase()} ${path}${fields}\``,
        `\`${id}\``,
        summary + note,
        toStatuses(operation, common),
      ]
    })
  return toTable(['endpoint', 'operationId', 'purpose', 'status'], rows)
}

const toErrors = (table: Readonly<Record<string, readonly [status: number, text: string]>>): string => {
  const rows = Object.entries(table).map(([code, [status, text]]) => [
    String(status),
    `\`${code}\``,
    text.replaceAll('<', '\\<'),
  ])
  return toTable(
    ['status', 'code', 'text'],
    rows.toSorted(([a], [b]) => Number(a) - Number(b)),
  )
}

/** Of every operation that takes a token, has a body, or uses the database. */
const COMMON = ['unauthorized', 'forbidden', 'internal-error', 'invalid-json', 'body-too-large']
const ALLOCATION_COMMON = [...COMMON, 'invalid-idempotency-key', 'database-unavailable', 'database-read-only']
const LEASE_COMMON = [...COMMON, 'too-many-requests', 'invalid-request', 'overloaded', 'lease-unavailable']

const tables: Readonly<Record<string, string>> = {
  'operations of the allocation API': toOperations(operationList, ALLOCATION_COMMON),
  'errors of the allocation API': toErrors(errors),
  'operations of the lease witness': toOperations(Object.values(leaseOperations), LEASE_COMMON),
  'errors of the lease witness': toErrors(leaseErrors),
}

/** The page with its current tables. Throws if a marker is missing. */
export const updateReference = (page: string): string =>
  Object.entries(tables).reduce((text, [name, table]) => {
    const [begin, end] = [`<!-- begin: ${name} -->\n`, `\n<!-- end: ${name} -->`]
    const [from, to] = [text.indexOf(begin), text.indexOf(end)]
    if (from < 0 || to < from) throw new Error(`docs/reference/api.md has no place for the ${name}`)
    return `${text.slice(0, from)}${begin}\n${table}\n${text.slice(to)}`
  }, page)
