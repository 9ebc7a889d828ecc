/** Series by name and labels, without the label `job` of the service, and one value a minute in promtool's notation. */
type Series = Readonly<Record<string, string>>

/** The series with which an alert fires, and similar ones with which it does not. */
interface AlertCase {
  readonly alert: string
  /** When it is looked at, such as `10m`. */
  readonly at: string
  /** What the alert has beside its severity. */
  readonly labels: Readonly<Record<string, string>>
  readonly fires: Series
  readonly silent: Series
}

export const alertCases: readonly AlertCase[] = [
  {
    alert: 'AllocationApiDown',
    at: '10m',
    labels: { job: 'allocation-api' },
    fires: {
      'up{instance="a"}': '1x5 0x10',
      'up{instance="b"}': '0x15',
    },
    // One replica is left.
    silent: {
      'up{instance="a"}': '0x15',
      'up{instance="b"}': '1x15',
    },
  },
  {
    alert: 'AllocationApiReplicaDown',
    at: '12m',
    labels: { job: 'allocation-api', instance: 'a' },
    fires: {
      'up{instance="a"}': '1x5 0x10',
      'up{instance="b"}': '1x15',
    },
    // A restart of three minutes.
    silent: { 'up{instance="a"}': '1x5 0x3 1x10' },
  },
  {
    alert: 'AllocationApiNotReady',
    at: '10m',
    labels: { job: 'allocation-api', instance: 'a' },
    fires: {
      'pdm_ready{instance="a"}': '0x15',
      'pdm_database_accepts_writes{instance="a"}': '0x15',
      'pdm_ready{instance="b"}': '1x15',
      'pdm_database_accepts_writes{instance="b"}': '1x15',
    },
    // The database is unavailable for all, which is another alert.
    silent: {
      'pdm_ready{instance="a"}': '0x15',
      'pdm_database_accepts_writes{instance="a"}': '0x15',
    },
  },
  {
    alert: 'AllocationApiErrors',
    at: '15m',
    labels: { job: 'allocation-api' },
    fires: {
      'pdm_http_request_duration_seconds_count{route="/api/v1/pool/:domain/reserve", status="201"}': '0+90x20',
      'pdm_http_request_duration_seconds_count{route="/api/v1/pool/:domain/reserve", status="500"}': '0+10x20',
    },
    silent: {
      'pdm_http_request_duration_seconds_count{route="/api/v1/pool/:domain/reserve", status="201"}': '0+97x20',
      'pdm_http_request_duration_seconds_count{route="/api/v1/pool/:domain/reserve", status="500"}': '0+3x20',
    },
  },
  {
    alert: 'AllocationApiSlow',
    at: '25m',
    labels: { job: 'allocation-api' },
    fires: {
      'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="1"}': '0+90x30',
      'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="2.5"}': '0+100x30',
      'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="+Inf"}': '0+100x30',
    },
    silent: {
      'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="1"}': '0+100x30',
      'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="2.5"}': '0+100x30',
      'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="+Inf"}': '0+100x30',
    },
  },
  {
    alert: 'AllocationApiEventLoopSaturated',
    at: '25m',
    labels: { job: 'allocation-api', instance: 'a' },
    fires: { 'pdm_event_loop_active_seconds_total{instance="a"}': '0+57x30' },
    silent: { 'pdm_event_loop_active_seconds_total{instance="a"}': '0+48x30' },
  },
  {
    alert: 'AllocationApiReplicasDiffer',
    at: '80m',
    labels: { job: 'allocation-api' },
    fires: {
      'pdm_build_info{instance="a", version="1.0.0", node="v24.8.0", dns_provider="powerdns"}': '1x90',
      'pdm_build_info{instance="b", version="1.0.0", node="v24.8.0", dns_provider="local"}': '1x90',
    },
    silent: {
      'pdm_build_info{instance="a", version="1.0.0", node="v24.8.0", dns_provider="powerdns"}': '1x90',
      'pdm_build_info{instance="b", version="1.0.0", node="v24.8.0", dns_provider="powerdns"}': '1x90',
    },
  },
  {
    alert: 'AllocationApiDatabaseUnavailable',
    at: '10m',
    labels: { job: 'allocation-api' },
    fires: {
      'pdm_database_accepts_writes{instance="a"}': '1x5 0x10',
      'pdm_database_accepts_writes{instance="b"}': '1x5 0x10',
    },
    // Only one replica does not reach it.
    silent: {
      'pdm_database_accepts_writes{instance="a"}': '0x15',
      'pdm_database_accepts_writes{instance="b"}': '1x15',
    },
  },
  {
    alert: 'AllocationApiDatabaseDurabilityWeak',
    at: '10m',
    labels: { mode: 'asynchronous' },
    fires: {
      'pdm_database_durability{mode="synchronous"}': '0x15',
      'pdm_database_durability{mode="single"}': '0x15',
      'pdm_database_durability{mode="asynchronous"}': '1x15',
      'pdm_database_durability{mode="volatile"}': '0x15',
    },
    silent: {
      'pdm_database_durability{mode="synchronous"}': '0x15',
      'pdm_database_durability{mode="single"}': '1x15',
      'pdm_database_durability{mode="asynchronous"}': '0x15',
      'pdm_database_durability{mode="volatile"}': '0x15',
    },
  },
  {
    alert: 'AllocationApiDatabaseConnectionsExhausted',
    at: '10m',
    labels: { job: 'allocation-api' },
    fires: {
      pdm_database_connections: '95x15',
      pdm_database_max_connections: '97x15',
    },
    silent: {
      pdm_database_connections: '60x15',
      pdm_database_max_connections: '97x15',
    },
  },
  {
    alert: 'AllocationApiExpiredSweeperStalled',
    at: '30m',
    labels: { job: 'allocation-api' },
    fires: { 'pdm_sweeper_last_run_timestamp_seconds{instance="a"}': '0x40' },
    // Another replica sweeps.
    silent: {
      'pdm_sweeper_last_run_timestamp_seconds{instance="a"}': '0x40',
      'pdm_sweeper_last_run_timestamp_seconds{instance="b"}': '0+60x40',
    },
  },
  {
    alert: 'AllocationApiZoneNotInSync',
    at: '15m',
    labels: { zone: 'pool.example' },
    fires: {
      'pdm_dns_oldest_pending_seconds{instance="a", zone="pool.example"}': '0+60x20',
      'pdm_dns_oldest_pending_seconds{instance="b", zone="pool.example"}': '0+60x20',
    },
    silent: { 'pdm_dns_oldest_pending_seconds{instance="a", zone="pool.example"}': '0 60 120 180 240 0x20' },
  },
  {
    alert: 'AllocationApiPendingNamesBacklog',
    at: '15m',
    labels: { zone: 'pool.example' },
    fires: {
      'pdm_dns_pending_names{instance="a", zone="pool.example"}': '5000x20',
      'pdm_dns_pending_names{instance="b", zone="pool.example"}': '5000x20',
    },
    silent: { 'pdm_dns_pending_names{instance="a", zone="pool.example"}': '5000x5 800x15' },
  },
  {
    alert: 'AllocationApiZoneNamesFailing',
    at: '20m',
    labels: { zone: 'pool.example', cause: 'provider' },
    fires: { 'pdm_dns_failing_names{zone="pool.example", cause="provider"}': '3x30' },
    silent: { 'pdm_dns_failing_names{zone="pool.example", cause="provider"}': '3x10 0x20' },
  },
  {
    alert: 'AllocationApiZoneConflict',
    at: '10m',
    labels: { zone: 'pool.example' },
    fires: { 'pdm_dns_failing_names{zone="pool.example", cause="foreign-record"}': '1x15' },
    silent: {
      'pdm_dns_failing_names{zone="pool.example", cause="provider"}': '1x15',
      'pdm_dns_failing_names{zone="pool.example", cause="foreign-record"}': '0x15',
    },
  },
  {
    alert: 'AllocationApiZoneStopped',
    at: '8m',
    labels: { zone: 'pool.example', cause: 'database-older' },
    fires: { 'pdm_dns_zone_stopped{zone="pool.example", cause="database-older"}': '1x10' },
    // The zone was resumed.
    silent: { 'pdm_dns_zone_stopped{zone="pool.example", cause="database-older"}': '1 _x10' },
  },
  {
    alert: 'AllocationApiZoneSyncStalled',
    at: '15m',
    labels: { zone: 'pool.example' },
    fires: {
      'pdm_dns_oldest_pending_seconds{zone="pool.example"}': '0+60x20',
      'pdm_dns_syncs_total{zone="pool.example", outcome="done"}': '7x20',
      'pdm_dns_syncs_total{zone="pool.example", outcome="busy"}': '0+2x20',
      'pdm_dns_failing_names{zone="pool.example", cause="provider"}': '0x20',
    },
    // Syncs end, but the changes are many.
    silent: {
      'pdm_dns_oldest_pending_seconds{zone="pool.example"}': '0+60x20',
      'pdm_dns_syncs_total{zone="pool.example", outcome="done"}': '0+1x20',
      'pdm_dns_failing_names{zone="pool.example", cause="provider"}': '0x20',
    },
  },
  {
    alert: 'AllocationApiZoneDriftRepeated',
    at: '100m',
    labels: { zone: 'pool.example' },
    fires: { 'pdm_dns_drifted_names_total{zone="pool.example"}': '0x30 1x60 2x60' },
    // One edit of five names.
    silent: { 'pdm_dns_drifted_names_total{zone="pool.example"}': '0x30 5x120' },
  },
  {
    alert: 'AllocationApiDriftChecksFailing',
    at: '80m',
    labels: { zone: 'pool.example' },
    fires: {
      'pdm_dns_drift_checks_total{zone="pool.example", outcome="unavailable"}': '0+1x90',
      'pdm_dns_drift_checks_total{zone="pool.example", outcome="compared"}': '4x90',
    },
    // A later check succeeded.
    silent: {
      'pdm_dns_drift_checks_total{zone="pool.example", outcome="unavailable"}': '0+1x20 20x70',
      'pdm_dns_drift_checks_total{zone="pool.example", outcome="compared"}': '4x40 5x50',
    },
  },
  {
    alert: 'AllocationApiDriftCheckOverdue',
    at: '70m',
    labels: { zone: 'pool.example' },
    fires: { 'pdm_dns_last_drift_check_timestamp_seconds{zone="pool.example"}': '0x90' },
    silent: { 'pdm_dns_last_drift_check_timestamp_seconds{zone="pool.example"}': '0x30 1800x60' },
  },
  {
    alert: 'AllocationApiDnsCircuitOpen',
    at: '8m',
    labels: { job: 'allocation-api' },
    fires: {
      'pdm_dns_circuit_open{instance="a"}': '1x10',
      'pdm_dns_circuit_open{instance="b"}': '0x10',
    },
    silent: { 'pdm_dns_circuit_open{instance="a"}': '1x3 0x10' },
  },
  {
    alert: 'AllocationApiPoolDraining',
    at: '1450m',
    labels: { pool: 'old.example' },
    fires: { 'pdm_pool_draining{pool="old.example"}': '1x1500' },
    silent: { 'pdm_pool_draining{pool="old.example"}': '1x600 _x900' },
  },
  {
    alert: 'AllocationApiDeploymentsFailing',
    at: '40m',
    labels: { job: 'allocation-api' },
    fires: {
      'pdm_deployment_duration_seconds_count{outcome="failed"}': '0x5 1x5 2x5 3x60',
      'pdm_deployment_duration_seconds_count{outcome="ready"}': '0+1x80',
    },
    silent: {
      'pdm_deployment_duration_seconds_count{outcome="failed"}': '0x5 1x70',
      'pdm_deployment_duration_seconds_count{outcome="ready"}': '0+1x80',
    },
  },
  {
    alert: 'AllocationApiDeploymentsQueued',
    at: '35m',
    labels: { job: 'allocation-api' },
    fires: { 'pdm_deployments{status="pending"}': '4x40' },
    silent: { 'pdm_deployments{status="pending"}': '4x20 0x20' },
  },
  {
    alert: 'AllocationApiDeploymentsDiskFull',
    at: '8m',
    labels: { job: 'allocation-api', instance: 'a' },
    fires: { 'pdm_deployments_dir_free_bytes{instance="a"}': '500000000x10' },
    silent: { 'pdm_deployments_dir_free_bytes{instance="a"}': '5000000000x10' },
  },
  {
    alert: 'AllocationApiCredentialChecksUnavailable',
    at: '30m',
    labels: { kind: 'token' },
    fires: {
      'pdm_credential_validations_total{kind="token", outcome="unavailable"}': '0+3x40',
      'pdm_credential_validations_total{kind="token", outcome="accepted"}': '0+1x40',
    },
    silent: {
      'pdm_credential_validations_total{kind="token", outcome="unavailable"}': '0+1x40',
      'pdm_credential_validations_total{kind="token", outcome="accepted"}': '0+3x40',
    },
  },
  {
    alert: 'AllocationApiTokenGuessing',
    at: '15m',
    labels: { operation: 'commit' },
    fires: { 'pdm_operations_total{operation="commit", outcome="token-mismatch"}': '0+30x20' },
    silent: { 'pdm_operations_total{operation="commit", outcome="token-mismatch"}': '0+3x20' },
  },
  {
    alert: 'LeaseWitnessDown',
    at: '8m',
    labels: { job: 'lease-witness' },
    fires: { 'up{instance="a"}': '1x5 0x10' },
    silent: {
      'up{instance="a"}': '0x15',
      'up{instance="b"}': '1x15',
    },
  },
  {
    alert: 'LeaseWitnessDown',
    at: '8m',
    labels: { job: 'lease-witness' },
    // The target is gone.
    fires: { up: '1x5 stale' },
    // An installation without a witness.
    silent: { 'up{job="allocation-api", instance="a"}': '1x15' },
  },
  {
    alert: 'LeaseWitnessNotReady',
    at: '8m',
    labels: { job: 'lease-witness' },
    fires: { lease_witness_ready: '1x5 0x10' },
    silent: { lease_witness_ready: '1x15' },
  },
  {
    alert: 'LeaseWitnessErrors',
    at: '10m',
    labels: { job: 'lease-witness' },
    fires: {
      'lease_witness_http_request_duration_seconds_count{route="/lease/:slot", status="200"}': '0+90x15',
      'lease_witness_http_request_duration_seconds_count{route="/lease/:slot", status="503"}': '0+10x15',
    },
    silent: {
      'lease_witness_http_request_duration_seconds_count{route="/lease/:slot", status="200"}': '0+98x15',
      'lease_witness_http_request_duration_seconds_count{route="/lease/:slot", status="503"}': '0+2x15',
    },
  },
  {
    alert: 'LeaseWitnessLateRenewals',
    at: '20m',
    labels: { job: 'lease-witness' },
    fires: {
      'lease_witness_operations_total{method="PUT", route="/lease/:slot", outcome="rejected-expired"}': '0+1x30',
    },
    silent: {
      'lease_witness_operations_total{method="PUT", route="/lease/:slot", outcome="rejected-expired"}': '0x10 1x20',
    },
  },
  {
    alert: 'LeaseWitnessDurabilityWeak',
    at: '10m',
    labels: { mode: 'asynchronous' },
    fires: { 'lease_witness_database_durability{mode="asynchronous"}': '1x15' },
    silent: { 'lease_witness_database_durability{mode="asynchronous"}': '0x15' },
  },
]
