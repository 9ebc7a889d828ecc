import { type DnsState, isLoadBalancerAddress, type Target, type TargetChange, toAddressDetail } from '@pool/contract'
import { isAtOrBelow } from '../dns/domain/rrset.ts'
import { createRecords, planTarget, type RecordTemplate } from '../dns/domain/target.ts'
import type { DuplicateRequest, Idempotency } from '../idempotency/idempotency.ts'
import { type Caller, type PoolName, type Pools, toFqdn, validatePool } from '../naming/naming.ts'
import type { WaitUntilApplied } from '../reconciler/reconciler.ts'
import { findTargetConflict } from '../records/domain/change.ts'
import { deriveRecords } from '../records/domain/derive.ts'
import type {
  CommitCommand,
  CommitDecision,
  CommitOutcome,
  InvalidField,
  Rejection,
  TargetConflict,
  UpdateCommand,
  UpdateDecision,
  UpdateOutcome,
} from './domain/types.ts'
import type { AllocationReader } from './reader.ts'
import type { AllocationRepository } from './repository.ts'
import { type CommitRow, toCommitDecision } from './statements/commit.ts'
import { NO_TENANT_RECORDS, toUpdateDecision, type UpdateRequest, type UpdateRow } from './statements/update.ts'

/** What the DNS provider accepts. */
export interface TargetOptions {
  /** Whether an address in 127/8 can be that of a load balancer. */
  readonly acceptsLoopback: boolean
  /** Whether it has NS and DS records below the zone. */
  readonly canDelegate: boolean
}

export interface ActiveNameOptions extends TargetOptions {
  readonly repository: Pick<AllocationRepository, 'commit' | 'update'>
  readonly reader: Pick<AllocationReader, 'find' | 'findHolder'>
  readonly idempotency: Idempotency
  /** Waits, for a bounded time, until the provider has the records of a version. */
  readonly waitUntilApplied: WaitUntilApplied
  readonly pools: () => Pools
  readonly recordTemplate: RecordTemplate
}

export const NO_ADDRESS = {
  kind: 'invalid-target',
  detail: 'loadBalancerIP or loadBalancerIPv6 must stay; send another address, or another form of target.',
} as const

export const validateTarget = (
  fqdn: string,
  { loadBalancerIP, consoleLoadBalancerIP, loadBalancerHostname, nameservers }: TargetChange,
  { acceptsLoopback, canDelegate }: TargetOptions,
): InvalidField | null => {
  const addresses = Object.entries({ loadBalancerIP, consoleLoadBalancerIP })
  const invalid = addresses.find(([, address]) => address && !isLoadBalancerAddress(address, acceptsLoopback))
  if (invalid) return { kind: 'invalid-lb-ip', detail: toAddressDetail(invalid[0]) }
  if (loadBalancerHostname && isAtOrBelow(loadBalancerHostname, fqdn)) {
    return { kind: 'invalid-lb-hostname', detail: `loadBalancerHostname must not be ${fqdn} or a name below it.` }
  }
  if (nameservers && !canDelegate) {
    return {
      kind: 'invalid-nameservers',
      detail: 'The DNS provider has no NS records; send an address or a host name.',
    }
  }
  return nameservers?.some(name => isAtOrBelow(name, fqdn))
    ? { kind: 'invalid-nameservers', detail: `nameservers must not be ${fqdn} or names below it.` }
    : null
}

export const validateFields = (
  { poolDomain, subdomain, sovereignFQDN }: PoolName & { readonly sovereignFQDN?: string | undefined },
  change: TargetChange,
  options: TargetOptions,
): InvalidField | null => {
  const fqdn = toFqdn(poolDomain, subdomain)
  const invalid = validateTarget(fqdn, change, options)
  if (invalid) return invalid
  return sovereignFQDN === undefined || sovereignFQDN === fqdn
    ? null
    : { kind: 'invalid-fqdn', detail: `sovereignFQDN must be ${fqdn}, the subdomain and the pool.` }
}

/** A target in the content of a request: an address alone is as in the builds that knew nothing else. */
const toContent = (change: TargetChange): readonly unknown[] => {
  const { loadBalancerIP, ...others } = change
  return loadBalancerIP === null || Object.keys(others).length > 0 ? [null, change] : [loadBalancerIP ?? null]
}

/** Of a request that was planned on the current target. */
type ChangeDecision =
  | Exclude<UpdateDecision, { kind: 'target-changed' }>
  | InvalidField
  | TargetConflict
  | Rejection<'conflict'>

/** Names with records. */
export const createActiveNames = ({
  repository,
  reader,
  idempotency,
  waitUntilApplied,
  pools,
  recordTemplate,
  ...options
}: ActiveNameOptions) => {
  const toRecords = ({ poolDomain, subdomain }: PoolName, target: Target) =>
    createRecords(toFqdn(poolDomain, subdomain), target, recordTemplate)
  /** The first plan is that of a target of which nothing stays. */
  const changeTarget = async (
    command: UpdateCommand,
    request: Pick<UpdateRequest, 'caller' | 'claim'>,
  ): Promise<Exclude<ChangeDecision, Rejection<'conflict'>> | DuplicateRequest> => {
    const { change, ...name } = command
    const fqdn = toFqdn(name.poolDomain, name.subdomain)
    let tenant = NO_TENANT_RECORDS
    for (let current: Target = {}; ; ) {
      const plan = change ? planTarget(current, change) : null
      const records = plan?.target ? deriveRecords(fqdn, plan.target, tenant.records, recordTemplate) : []
      const decision = await repository.update({ ...name, ...request, plan, records, tenant })
      if (decision.kind !== 'target-changed') return decision
      ;({ current, tenant } = decision)
      const target = change ? planTarget(current, change).target : null
      if (change && !target) return NO_ADDRESS
      const conflict = target && findTargetConflict(fqdn, target, tenant.records, recordTemplate)
      if (conflict) return { kind: 'record-conflict', detail: conflict }
    }
  }

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
      const { poolDomain, subdomain, tokenHash, sovereignFQDN, target } = command
      const rejection = validateFields(command, target, options) ?? validatePool(poolDomain, pools())
      if (rejection) return rejection
      const records = toRecords(command, target)
      const content = ['commit', poolDomain, subdomain, tokenHash.toString('hex'), sovereignFQDN, ...toContent(target)]
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
     * Changes the target of an active name, then waits a bounded time for its records. The FQDN is validated only.
     * Without a token, any active name can be changed: the caller must be an operator.
     */
    async update(command: UpdateCommand, caller: Caller, key: string | undefined): Promise<UpdateOutcome> {
      const { poolDomain, subdomain, tokenHash, change = {}, sovereignFQDN } = command
      const rejection = validateFields(command, change, options) ?? validatePool(poolDomain, pools())
      if (rejection) return rejection
      const token = tokenHash ? tokenHash.toString('hex') : null
      const [address, ...others] = toContent(change)
      const content = ['update', poolDomain, subdomain, token, address, sovereignFQDN ?? null, ...others]
      const decision = await idempotency.executeThenReplay<ChangeDecision>(key, content, {
        execute: claim => changeTarget(command, { caller, claim }),
        success: 'updated',
        replay: async stored => {
          const first = toUpdateDecision(stored as UpdateRow)
          if (first.kind !== 'updated') throw new Error('the stored outcome of an update is a rejection')
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
