import type { PlannedChange } from '@pool/contract'
import type { RecordChange, RecordSet } from '../../dns/domain/rrset.ts'

export const toPlannedChange = (subdomain: string, change: RecordChange): PlannedChange => {
  if (change.kind === 'delete') return { subdomain, action: 'delete', name: change.name, type: change.type }
  const { name, type, ttl, values } = change.set
  return { subdomain, action: 'upsert', name, type, ttl, values: [...values] }
}

export const toWireRecord = ({ name, type, ttl, values }: RecordSet) => ({ name, type, ttl, data: [...values] })
