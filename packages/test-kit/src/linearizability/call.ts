import type { Lease } from '@pool/contract/lease'
import type { LeaseConnection, LeaseRequest, LeaseResponse } from '../lease-connection.ts'
import type { Asked, Operation, Told } from './history.ts'

export const requestOf = (slot: string, asked: Asked): LeaseRequest => {
  const path = `/lease/${slot}`
  switch (asked.kind) {
    case 'read': {
      const { known } = asked
      return { method: 'GET', path, ...(known === undefined ? {} : { headers: { 'If-None-Match': `"${known}"` } }) }
    }
    case 'release': {
      const { holder, generation } = asked
      return { method: 'DELETE', path, headers: { 'If-Match': `${generation}`, 'X-Holder': holder } }
    }
    default: {
      const { kind, holder, generation, ttlMs } = asked
      const body = JSON.stringify({ holder, ttlSeconds: ttlMs / 1_000, op: kind })
      return { method: 'PUT', path, headers: { 'If-Match': `${generation}` }, body }
    }
  }
}

/** What the answer says, if it is one that the contract knows here. */
export const toldBy = ({ status, tag, text }: LeaseResponse): Told => {
  switch (status) {
    case 204:
    case 404:
      return { status }
    case 304:
      if (/^"\d+"$/.test(tag)) return { status, generation: Number(tag.slice(1, -1)) }
      break
    case 200:
    case 412: {
      const lease: Lease = JSON.parse(text)
      if (tag === `"${lease.generation}"`) return { status, lease }
    }
  }
  throw new Error(`no answer of the contract: ${status} ${tag} ${text}`)
}

/** Makes one call and takes down all of it. */
export const call = async (wire: LeaseConnection, slot: string, asked: Asked): Promise<Operation> => {
  const request = requestOf(slot, asked)
  const sentAt = Date.now()
  const start = performance.now()
  const answer = await wire.send(request)
  const end = performance.now()
  const answeredAt = Date.now()
  return { slot, asked, told: toldBy(answer), start, end, sentAt, answeredAt }
}
