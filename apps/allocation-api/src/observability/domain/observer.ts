/**
 * One request and its response. `route` is the pattern, not the path: it is bounded and holds nothing that was sent. Of a
 * path, only the id of a deployment is logged, if it has the form of one.
 */
export interface RequestLogEntry {
  readonly requestId: string
  readonly listener: string
  /** Of the client; of the proxy in front of it, if that is not trusted. */
  readonly address: string | null
  readonly deployment?: string | undefined
  readonly method: string
  readonly route: string
  readonly status: number
  readonly outcome: string
  /** Of an error of the database: its SQLSTATE, the code of the connection's error, or which limit of the service it exceeded. */
  readonly cause?: string | undefined
  /** Seconds until the response headers were ready. */
  readonly seconds: number
}

/** Load balancers and Prometheus repeat them, and their results are metrics. */
export const PROBE_ROUTES: ReadonlySet<string> = new Set(['/livez', '/readyz', '/healthz', '/metrics'])

/** The pattern of a path of the contract. */
export const toRoute = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ':$1')

/** The unexpected errors that the parts of the service report. Each is the message of its log line. */
export type ErrorEvent =
  | 'dns provider error'
  | 'dns provider threw an unexpected error'
  | 'zone sync failed'
  | 'search for due zones failed'
  | 'schema check failed'
  | 'sweep failed'
  | 'deletion of old rows failed'
  | 'pool refresh failed'
  | 'deployment failed unexpectedly'
  | 'deployment lease renewal failed'
  | 'checks at the start failed'
  | 'metrics source unavailable'
  | 'storing a sample failed'

export interface MigrationLabel {
  readonly version: number
  readonly name: string
}

export type DriftCheckResult =
  | { readonly kind: 'compared'; readonly driftedCount: number }
  | { readonly kind: 'unavailable'; readonly reason: string }

/**
 * `done`: the sync had the lock of the zone, and no name failed. `incomplete`: it had the lock, and at least one name failed.
 * `busy`: another replica had the lock for too long. `failed`: an unexpected error, which is logged.
 */
export const SYNC_OUTCOMES = ['done', 'incomplete', 'busy', 'failed'] as const
export type SyncOutcome = (typeof SYNC_OUTCOMES)[number]

export type CredentialCheckOutcome =
  | { readonly kind: 'accepted' | 'rejected' | 'too-many-attempts' }
  | { readonly kind: 'unavailable'; readonly message: string }

/** What the reconciler reports. */
export interface ReconcilerObserver {
  onProviderCall(operation: 'read' | 'apply', outcome: 'done' | 'rejected' | 'unavailable', seconds: number): void
  /** Calls to the provider are suspended after failures, for `zones` zones. `reason` is that of the last failure. */
  onCircuitOpened(reason: string, zones: number): void
  /** A call succeeded `openSeconds` after the circuit opened. */
  onCircuitClosed(openSeconds: number): void
  onSync(zone: string, outcome: SyncOutcome): void
  onDriftCheck(zone: string, result: DriftCheckResult): void
  /** Nothing is written to the zone any more until an operator decides. */
  onZoneStopped(zone: string, cause: string): void
  /** The zone has records that no allocation explains. These names wait until an operator adopts or removes them. */
  onUnknownNames(zone: string, subdomains: readonly string[]): void
  /** The provider does not accept the marker, so nothing shows later that a restored database is older than the zone. */
  onMarkerRejected(zone: string, reason: string): void
  /** A statement that runs every second succeeded. */
  onDatabaseReached(): void
  /** `context` is logged with the error and must not hold secrets. */
  onError(event: ErrorEvent, error: unknown, context?: Readonly<Record<string, unknown>>): void
}

/** What the parts of the service report. One object logs and counts it, so no part knows the log or the metrics. */
export interface Observer extends ReconcilerObserver {
  /** The headers of a response are ready. */
  onRequest(entry: RequestLogEntry): void
  /** A client sent an Idempotency-Key that can be guessed. Logged once for each address, without the key. */
  onShortKey(address: string | null): void
  /** A request met an error that no operation expects. */
  onRequestFailed(error: unknown, requestId: string): void
  /** A response was aborted after its headers were sent, because the database became unavailable. */
  onResponseAborted(error: unknown, requestId: string): void
  /** At the start: something in the environment is probably a mistake. `detail` continues a sentence about the variable. */
  onConfigWarning(variable: string, detail: string): void
  /** The start waits for the database. `reason` has no secrets. */
  onDatabaseWait(reason: string, waitedMs: number): void
  /** At the start: sessions of clients that are gone may stay. `remedy` is SQL for an operator. */
  onMissingSessionSettings(remedy: string): void
  /** Acknowledged writes can be lost; at the start, and when that changes. */
  onWeakDurability(durability: string): void
  onMigrated(migration: MigrationLabel): void
  /** A migration waits for a lock that another transaction holds. */
  onMigrationLocked(migration: MigrationLabel): void
  /** The database no longer fits this build; null: it fits again. */
  onSchemaMisfit(reason: string | null): void
  /** At the start: the zones move to the configured provider, and `names` names are due again. */
  onProviderMove(zones: readonly string[], names: number): void
  onCredentialCheck(kind: 'object-storage' | 'token', result: CredentialCheckOutcome): void
  /** The sweeper deleted `count` expired reservations. */
  onSwept(count: number): void
  /** A run of the sweeper ended without an error. */
  onSweepEnded(): void
  /** A run deleted rows that were older than their retention. */
  onOldRowsDeleted(counts: object): void
  /** At the start: the service cannot publish names in these zones. The texts have no secrets. */
  onZonesUnusable(zones: readonly string[], reason: string, advice: string): void
  /** At the start: regions of the object storage do not answer. */
  onObjectStorageUnreachable(reason: string): void
  /** At the start: something that deployments need is missing on this machine. `reason` has no secrets. */
  onDeploymentsUnavailable(reason: string): void
  /** At the start: what a deployment module can read on this machine. `reason` has no secrets. */
  onTerraformExposed(reason: string): void
  /** At the start: what the deployment module does not make. */
  onModuleLimited(limits: string): void
  /** This process ended its run of a deployment. */
  onRunEnded(deployment: string, outcome: string, seconds: number): void
}

/** Without a failure for this time, a success ends the outage: statements that were in flight can still fail. */
const QUIET_MS = 5_000

interface EndedOutage {
  /** From the first failure to the last. */
  readonly seconds: number
  readonly failures: number
}

/** Reduces repeated failures of one dependency to the start and the end of an outage. `now` is a monotonic clock in milliseconds. */
export const createOutage = (now: () => number) => {
  let current: { readonly startedAt: number; lastFailureAt: number; failures: number } | null = null
  return {
    /** Whether this failure starts an outage. */
    onFailure(): boolean {
      const at = now()
      if (current === null) {
        current = { startedAt: at, lastFailureAt: at, failures: 1 }
        return true
      }
      current.lastFailureAt = at
      current.failures += 1
      return false
    },
    /** The outage that this success ends; null if there is none, or if its last failure is too recent. */
    onSuccess(): EndedOutage | null {
      if (current === null || now() - current.lastFailureAt < QUIET_MS) return null
      const { startedAt, lastFailureAt, failures } = current
      current = null
      return { seconds: Math.round(lastFailureAt - startedAt) / 1_000, failures }
    },
  }
}
