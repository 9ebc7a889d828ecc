import { type DnsState, invalidAddressDetail, isLoadBalancerAddress } from '@pool/contract'
import { createRecords, type RecordTemplate } from '../dns/domain/rrset.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import { type Caller, type PoolName, type Pools, toFqdn, validatePool } from '../naming/naming.ts'
import type { WaitUntilApplied } from '../reconciler/reconciler.ts'
import type {
  CommitCommand,
  CommitDecision,
  CommitOutcome,
  InvalidField,
  Rejection,
  UpdateCommand,
  UpdateDecision,
  UpdateOutcome,
} from './domain/types.ts'
import type { AllocationReader } from './reader.ts'
import type { AllocationRepository } from './repository.ts'
import { type CommitRow, toCommitDecision } from './statements/commit.ts'
import { toUpdateDecision, type UpdateRow } from './statements/update.ts'

export interface ActiveNameOptions {
  readonly repository: Pick<AllocationRepository, 'commit' | 'update'>
  readonly reader: Pick<AllocationReader, 'find' | 'findHolder'>
  readonly idempotency: Idempotency
  /** Waits, for a bounded time, until the provider has the records of a version. */
  readonly waitUntilApplied: WaitUntilApplied
  readonly pools: () => Pools
  readonly recordTemplate: RecordTemplate
  /** Whether an address in 127/8 can be that of a load balancer. */
  readonly acceptsLoopback: boolean
}

export const validateFields = (
  { poolDomain, subdomain, loadBalancerIP, sovereignFQDN }: Omit<UpdateCommand, 'tokenHash'>,
  acceptsLoopback: boolean,
): InvalidField | null => {
  if (loadBalancerIP !== undefined && !isLoadBalancerAddress(loadBalancerIP, acceptsLoopback)) {
    return { kind: 'invalid-lb-ip', detail: invalidAddressDetail }
  }
  const fqdn = toFqdn(poolDomain, subdomain)
  return sovereignFQDN === undefined || sovereignFQDN === fqdn
    ? null
    : { kind: 'invalid-fqdn', detail: `sovereignFQDN must be ${fqdn}, the subdomain and the pool.` }
}

/** Names with records. */
export const createActiveNames = ({
  repository,
  reader,
  idempotency,
  waitUntilApplied,
  pools,
  recordTemplate,
  acceptsLoopback,
}: ActiveNameOptions) => {
  const toRecords = ({ poolDomain, subdomain }: PoolName, address: string) =>
    createRecords(toFqdn(poolDomain, subdomain), address, recordTemplate)

  /** The rejection of a repeated request by a client that no longer has the name; null if it still has it. */
  const rejectFormerHolder = async (
    name: PoolName,
    tokenHash: Buffer,
  ): Promise<Rejection<'not-found' | 'already-active' | 'conflict'> | null> => {
    const holder = await reader.findHolder(name, tokenHash)
    if (holder === 'own') return null
    if (holder === null) return { kind: 'not-found' }
    return { kind: holder === 'active' ? 'already-active' : 'conflict' }
  }

  const findDns = async (name: PoolName): Promise<DnsState> => {
    const allocation = await reader.find(name)
    return allocation?.state === 'active' ? allocation.dns : { status: 'pending' }
  }

  return {
    /** Makes a reservation active, then waits a bounded time for its records. */
    async commit(command: CommitCommand, caller: Caller, key: string | undefined): Promise<CommitOutcome> {
      const { poolDomain, subdomain, tokenHash, sovereignFQDN, loadBalancerIP } = command
      const rejection = validateFields(command, acceptsLoopback) ?? validatePool(poolDomain, pools())
      if (rejection) return rejection
      const records = toRecords(command, loadBalancerIP)
      const content = ['commit', poolDomain, subdomain, tokenHash.toString('hex'), sovereignFQDN, loadBalancerIP]
      const decision = await idempotency.executeThenReplay<CommitDecision | Rejection<'conflict'>>(key, content, {
        execute: claim => repository.commit({ ...command, records, caller, claim }),
        success: 'committed',
        replay: async stored => {
          const first = toCommitDecision(stored as CommitRow)
          return first.kind === 'committed' ? ((await rejectFormerHolder(command, tokenHash)) ?? first) : first
        },
      })
      if (decision.kind !== 'committed') return decision
      const dns = await waitUntilApplied({ zone: poolDomain, subdomain, version: decision.version })
      return { kind: 'committed', allocation: { ...decision.allocation, dns } }
    },

    /**
     * Changes the address of an active name, then waits a bounded time for its records. The FQDN is validated only.
     * Without a token, any active name can be changed: the caller must be an operator.
     */
    async update(command: UpdateCommand, caller: Caller, key: string | undefined): Promise<UpdateOutcome> {
      const { poolDomain, subdomain, tokenHash, loadBalancerIP, sovereignFQDN } = command
      const rejection = validateFields(command, acceptsLoopback) ?? validatePool(poolDomain, pools())
      if (rejection) return rejection
      const records = loadBalancerIP === undefined ? [] : toRecords(command, loadBalancerIP)
      const token = tokenHash ? tokenHash.toString('hex') : null
      const content = ['update', poolDomain, subdomain, token, loadBalancerIP ?? null, sovereignFQDN ?? null]
      const decision = await idempotency.executeThenReplay<UpdateDecision | Rejection<'conflict'>>(key, content, {
        execute: claim => repository.update({ ...command, records, caller, claim }),
        success: 'updated',
        replay: async stored => {
          const first = toUpdateDecision(stored as UpdateRow)
          if (first.kind !== 'updated') return first
          const current = await reader.find(command)
          if (current === null) return { kind: 'not-found' }
          // An operator sends no token, but each grant has its own time.
          return current.reservedAt === first.allocation.reservedAt ? first : { kind: 'conflict' }
        },
      })
      if (decision.kind !== 'updated') return decision
      const { allocation, version } = decision
      const dns: DnsState =
        version === null ? await findDns(command) : await waitUntilApplied({ zone: poolDomain, subdomain, version })
      return { kind: 'updated', allocation: { ...allocation, dns } }
    },
  }
}
