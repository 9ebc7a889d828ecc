import { createCredentialService } from '../credentials/service.ts'
import { createBucketClaims } from '../deployments/bucket-claims.ts'
import { createSpecParser } from '../deployments/domain/spec.ts'
import { createDomainProof, createTxtResolver } from '../deployments/fqdn.ts'
import { createRemoteProvisioner } from '../deployments/remote-provisioner.ts'
import { createDeploymentService } from '../deployments/service.ts'
import { createTerraform } from '../deployments/terraform/terraform.ts'
import { readFreeBytes } from '../lib/free-space.ts'
import { createRateLimiter, toRateLimitKey } from '../lib/rate-limiter.ts'
import { findSecrets, type ServiceConfig } from '../service-config.ts'
import type { Base } from './base.ts'
import type { Database } from './database.ts'
import type { Names } from './names.ts'
import { type Job, MAX_LIMITED_CLIENTS, now } from './part.ts'

/** Below the contract's 8 s for one credential check, so that there is time for the response. */
const CREDENTIAL_CHECK_TIMEOUT_MS = 7_900
/** How long after its last renewal the lease of a deployment's run expires. */
const RUN_LEASE_MS = 30_000
/** How often a replica renews its leases and claims expired ones. */
const LEASE_RENEWAL_MS = 2_000
/** How long a request waits for the TXT record that proves a domain. */
const TXT_LOOKUP_TIMEOUT_MS = 5_000
/** Of one client address, in one process. */
const CHALLENGES_PER_MINUTE = 60

export type Deployments = ReturnType<typeof createDeployments>

/** Deployments, the buckets and domains that they claim, and the validation of their credentials. */
export const createDeployments = (
  config: ServiceConfig,
  { observer }: Base,
  { sql, readSql, writer, pools, timeoutMs }: Database,
  { allocations, idempotency }: Names,
) => {
  const { objectStorage, domainProof: proof, dnsProvider } = config
  const { knownProviders, concurrency, dataDir, runner, acceptsTestAddresses } = config.deployments
  const credentials = createCredentialService({
    config,
    objectStorageCa: config.objectStorageCa,
    deadlineMs: CREDENTIAL_CHECK_TIMEOUT_MS,
    now,
    wallClock: Date.now,
    onOutcome: observer.onCredentialCheck,
  })
  const domainProof = createDomainProof({
    sql,
    isRequired: proof.isRequired,
    lookUpTxt: createTxtResolver({ servers: proof.resolvers, timeoutMs: TXT_LOOKUP_TIMEOUT_MS }),
    timeoutMs,
  })
  const limitChallenges = createRateLimiter({ perMinute: CHALLENGES_PER_MINUTE, maxCallers: MAX_LIMITED_CLIENTS })
  const provisioner =
    runner === null
      ? createTerraform({ ...config.deployments, env: config.env, serviceSecrets: findSecrets(config.env) })
      : createRemoteProvisioner(runner, config.deployments.stopTimeoutMs)
  const deployments = createDeploymentService({
    sql,
    readSql,
    writer,
    domainProof,
    idempotency,
    allocations,
    validateKeys: credentials.validateKeys,
    findBucket: credentials.findBucket,
    acceptsTestAddresses: acceptsTestAddresses || dnsProvider.kind === 'local',
    ...createSpecParser({
      storageProvider: objectStorage.provider,
      knownProviders,
      bucketPrefix: objectStorage.platformPrefix,
      pools,
    }),
    provisioner,
    storage: objectStorage,
    maxConcurrentRuns: concurrency,
    statementTimeoutMs: timeoutMs,
    leaseMs: RUN_LEASE_MS,
    reservationTtlMs: config.reservation.ttlMs,
    nameCoolOffMs: config.nameCoolOffMs,
    now,
    observer: {
      onRunEnded: observer.onRunEnded,
      onError: (deployment, error) => observer.onError('deployment failed unexpectedly', error, { deployment }),
    },
  })
  const jobs: readonly Job[] = [
    { failure: 'deployment lease renewal failed', intervalMs: LEASE_RENEWAL_MS, run: deployments.tick },
  ]

  return {
    provisioner,
    deployments,
    routes: {
      deployments,
      buckets: createBucketClaims(sql, { timeoutMs }),
      domains: {
        createChallenge: domainProof.createChallenge,
        check: deployments.checkDomain,
        limitChallenges: (address: string | null) => limitChallenges(toRateLimitKey(address), now()),
      },
      credentials,
      providers: { objectStorage: objectStorage.provider, token: [...config.credentials.tokenUrls.keys()] },
    },
    gauges: {
      countDeployments: deployments.countByStatus,
      activeDeployments: deployments.activeCount,
      freeBytes: () => readFreeBytes(dataDir).catch(() => null),
    },
    jobs,
    stop: deployments.stop,
  }
}
