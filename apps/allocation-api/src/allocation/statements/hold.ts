import type { RenewCommand } from '../domain/types.ts'
import { hold, isInTime, isRowOf, letGo, type NameRequest, type NameStatement, requests } from '../sql.ts'

interface LineageRequest extends NameRequest {
  readonly lineageId: string
}

interface HoldRow {
  readonly isDone: boolean
}

const toText = (change: string): string => `
  with input as (${requests('lineage_id uuid')}),
    changed as (${change})
  select position, is_new as "isNew", a.subdomain is not null as "isDone"
  from input left join changed a on ${isRowOf('input')}
  where ${isInTime('changed')}`

const toColumns = ({ lineageId }: LineageRequest) => ({ lineage_id: lineageId })
const toDecision = ({ isDone }: HoldRow): boolean => isDone

/** Gives a live name with its token to a lineage; see `hold` in sql.ts. False if the token does not have the name. */
export const holdStatement: NameStatement<LineageRequest & RenewCommand, HoldRow, boolean> = {
  text: toText(hold('input')),
  toColumns,
  toDecision,
}

/** Ends the hold of a lineage; see `letGo` in sql.ts. False if it does not hold the name. */
export const letGoStatement = (coolOffMs: number): NameStatement<LineageRequest, HoldRow, boolean> => ({
  text: toText(letGo('input', coolOffMs)),
  toColumns,
  toDecision,
})
