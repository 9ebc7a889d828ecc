/** Values by name and labels, without the label `job` of the service: one a minute in promtool's notation. */
type Series = Readonly<Record<string, string>>

/** The values with which an alert fires, and others, which a comment explains, with which it does not. Null: none. */
type SeriesPairs = Readonly<Record<string, readonly [fires: string | null, silent: string | null]>>

const select = (series: SeriesPairs, index: 0 | 1): Series =>
  Object.fromEntries(
    Object.entries(series).flatMap(([name, values]) => (values[index] === null ? [] : [[name, values[index]]])),
  )

/** An alert, the labels that it has beside its severity, and the time when a test looks at it, such as `10m`. */
const alertCase = (alert: string, labels: Readonly<Record<string, string>>, at: string, series: SeriesPairs) => ({
  alert,
  labels,
  at,
  fires: select(series, 0),
  silent: select(series, 1),
})

export const alertCases = [
  alertCase('AllocationApiDown', { job: 'allocation-api' }, '10m', {
    // One replica is left.
    'up{instance="a"}': ['1x5 0x10', '0x15'],
    'up{instance="b"}': ['0x15', '1x15'],
  }),
  alertCase('AllocationApiReplicaDown', { job: 'allocation-api', instance: 'a' }, '12m', {
    // A restart of three minutes.
    'up{instance="a"}': ['1x5 0x10', '1x5 0x3 1x10'],
    'up{instance="b"}': ['1x15', null],
  }),
  alertCase('AllocationApiNotReady', { job: 'allocation-api', instance: 'a' }, '10m', {
    // The database is unavailable for all, which is another alert.
    'pdm_ready{instance="a"}': ['0x15', '0x15'],
    'pdm_database_accepts_writes{instance="a"}': ['0x15', '0x15'],
    'pdm_ready{instance="b"}': ['1x15', null],
    'pdm_database_accepts_writes{instance="b"}': ['1x15', null],
  }),
  alertCase('AllocationApiErrors', { job: 'allocation-api' }, '15m', {
    'pdm_http_request_duration_seconds_count{route="/api/v1/pool/:domain/reserve", status="201"}': [
      '0+90x20',
      '0+97x20',
    ],
    'pdm_http_request_duration_seconds_count{route="/api/v1/pool/:domain/reserve", status="500"}': [
      '0+10x20',
      '0+3x20',
    ],
  }),
  alertCase('AllocationApiSlow', { job: 'allocation-api' }, '25m', {
    'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="1"}': ['0+90x30', '0+100x30'],
    'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="2.5"}': [
      '0+100x30',
      '0+100x30',
    ],
    'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="+Inf"}': [
      '0+100x30',
      '0+100x30',
    ],
  }),
  alertCase('AllocationApiEventLoopSaturated', { job: 'allocation-api', instance: 'a' }, '25m', {
    'pdm_event_loop_active_seconds_total{instance="a"}': ['0+57x30', '0+48x30'],
  }),
  alertCase('AllocationApiReplicasDiffer', { job: 'allocation-api' }, '80m', {
    'pdm_build_info{instance="a", version="1.0.0", node="v24.8.0", dns_provider="powerdns"}': ['1x90', '1x90'],
    'pdm_build_info{instance="b", version="1.0.0", node="v24.8.0", dns_provider="local"}': ['1x90', null],
    'pdm_build_info{instance="b", version="1.0.0", node="v24.8.0", dns_provider="powerdns"}': [null, '1x90'],
  }),
  alertCase('AllocationApiDatabaseUnavailable', { job: 'allocation-api' }, '10m', {
    // Only one replica does not reach it.
    'pdm_database_accepts_writes{instance="a"}': ['1x5 0x10', '0x15'],
    'pdm_database_accepts_writes{instance="b"}': ['1x5 0x10', '1x15'],
  }),
  alertCase('AllocationApiDatabaseDurabilityWeak', { mode: 'asynchronous' }, '10m', {
    'pdm_database_durability{mode="synchronous"}': ['0x15', '0x15'],
    'pdm_database_durability{mode="single"}': ['0x15', '1x15'],
    'pdm_database_durability{mode="asynchronous"}': ['1x15', '0x15'],
    'pdm_database_durability{mode="volatile"}': ['0x15', '0x15'],
  }),
  alertCase('AllocationApiDatabaseConnectionsExhausted', { job: 'allocation-api' }, '10m', {
    pdm_database_connections: ['95x15', '60x15'],
    pdm_database_max_connections: ['97x15', '97x15'],
  }),
  alertCase('AllocationApiExpiredSweeperStalled', { job: 'allocation-api' }, '30m', {
    // Another replica sweeps.
    'pdm_sweeper_last_run_timestamp_seconds{instance="a"}': ['0x40', '0x40'],
    'pdm_sweeper_last_run_timestamp_seconds{instance="b"}': [null, '0+60x40'],
  }),
  alertCase('AllocationApiZoneNotInSync', { zone: 'pool.example' }, '15m', {
    'pdm_dns_oldest_pending_seconds{instance="a", zone="pool.example"}': ['0+60x20', '0 60 120 180 240 0x20'],
    'pdm_dns_oldest_pending_seconds{instance="b", zone="pool.example"}': ['0+60x20', null],
  }),
  alertCase('AllocationApiPendingNamesBacklog', { zone: 'pool.example' }, '15m', {
    'pdm_dns_pending_names{instance="a", zone="pool.example"}': ['5000x20', '5000x5 800x15'],
    'pdm_dns_pending_names{instance="b", zone="pool.example"}': ['5000x20', null],
  }),
  alertCase('AllocationApiZoneNamesFailing', { zone: 'pool.example', cause: 'provider' }, '20m', {
    'pdm_dns_failing_names{zone="pool.example", cause="provider"}': ['3x30', '3x10 0x20'],
  }),
  alertCase('AllocationApiZoneConflict', { zone: 'pool.example' }, '10m', {
    'pdm_dns_failing_names{zone="pool.example", cause="foreign-record"}': ['1x15', '0x15'],
    'pdm_dns_failing_names{zone="pool.example", cause="provider"}': [null, '1x15'],
  }),
  alertCase('AllocationApiZoneStopped', { zone: 'pool.example', cause: 'database-older' }, '8m', {
    // The zone was resumed.
    'pdm_dns_zone_stopped{zone="pool.example", cause="database-older"}': ['1x10', '1 _x10'],
  }),
  alertCase('AllocationApiZoneSyncStalled', { zone: 'pool.example' }, '15m', {
    // Syncs end, but the changes are many.
    'pdm_dns_oldest_pending_seconds{zone="pool.example"}': ['0+60x20', '0+60x20'],
    'pdm_dns_syncs_total{zone="pool.example", outcome="done"}': ['7x20', '0+1x20'],
    'pdm_dns_syncs_total{zone="pool.example", outcome="busy"}': ['0+2x20', null],
    'pdm_dns_failing_names{zone="pool.example", cause="provider"}': ['0x20', '0x20'],
  }),
  alertCase('AllocationApiZoneDriftRepeated', { zone: 'pool.example' }, '100m', {
    // One edit of five names.
    'pdm_dns_drifted_names_total{zone="pool.example"}': ['0x30 1x60 2x60', '0x30 5x120'],
  }),
  alertCase('AllocationApiDriftChecksFailing', { zone: 'pool.example' }, '80m', {
    // A later check succeeded.
    'pdm_dns_drift_checks_total{zone="pool.example", outcome="unavailable"}': ['0+1x90', '0+1x20 20x70'],
    'pdm_dns_drift_checks_total{zone="pool.example", outcome="compared"}': ['4x90', '4x40 5x50'],
  }),
  alertCase('AllocationApiDriftCheckOverdue', { zone: 'pool.example' }, '70m', {
    'pdm_dns_last_drift_check_timestamp_seconds{zone="pool.example"}': ['0x90', '0x30 1800x60'],
  }),
  alertCase('AllocationApiDnsCircuitOpen', { job: 'allocation-api' }, '8m', {
    'pdm_dns_circuit_open{instance="a"}': ['1x10', '1x3 0x10'],
    'pdm_dns_circuit_open{instance="b"}': ['0x10', null],
  }),
  alertCase('AllocationApiPoolDraining', { pool: 'old.example' }, '1450m', {
    'pdm_pool_draining{pool="old.example"}': ['1x1500', '1x600 _x900'],
  }),
  alertCase('AllocationApiDeploymentsFailing', { job: 'allocation-api' }, '40m', {
    'pdm_deployment_duration_seconds_count{outcome="failed"}': ['0x5 1x5 2x5 3x60', '0x5 1x70'],
    'pdm_deployment_duration_seconds_count{outcome="ready"}': ['0+1x80', '0+1x80'],
  }),
  alertCase('AllocationApiDeploymentsQueued', { job: 'allocation-api' }, '35m', {
    'pdm_deployments{status="pending"}': ['4x40', '4x20 0x20'],
  }),
  alertCase('AllocationApiDeploymentsDiskFull', { job: 'allocation-api', instance: 'a' }, '8m', {
    'pdm_deployments_dir_free_bytes{instance="a"}': ['500000000x10', '5000000000x10'],
  }),
  alertCase('AllocationApiCredentialChecksUnavailable', { kind: 'token' }, '30m', {
    'pdm_credential_validations_total{kind="token", outcome="unavailable"}': ['0+3x40', '0+1x40'],
    'pdm_credential_validations_total{kind="token", outcome="accepted"}': ['0+1x40', '0+3x40'],
  }),
  alertCase('AllocationApiTokenGuessing', { operation: 'commit' }, '15m', {
    'pdm_operations_total{operation="commit", outcome="token-mismatch"}': ['0+30x20', '0+3x20'],
  }),
  alertCase('LeaseWitnessDown', { job: 'lease-witness' }, '8m', {
    'up{instance="a"}': ['1x5 0x10', '0x15'],
    'up{instance="b"}': [null, '1x15'],
  }),
  alertCase('LeaseWitnessDown', { job: 'lease-witness' }, '8m', {
    // The target is gone.
    // An installation without a witness.
    up: ['1x5 stale', null],
    'up{job="allocation-api", instance="a"}': [null, '1x15'],
  }),
  alertCase('LeaseWitnessNotReady', { job: 'lease-witness' }, '8m', {
    lease_witness_ready: ['1x5 0x10', '1x15'],
  }),
  alertCase('LeaseWitnessErrors', { job: 'lease-witness' }, '10m', {
    'lease_witness_http_request_duration_seconds_count{route="/lease/:slot", status="200"}': ['0+90x15', '0+98x15'],
    'lease_witness_http_request_duration_seconds_count{route="/lease/:slot", status="503"}': ['0+10x15', '0+2x15'],
  }),
  alertCase('LeaseWitnessLateRenewals', { job: 'lease-witness' }, '20m', {
    'lease_witness_operations_total{method="PUT", route="/lease/:slot", outcome="rejected-expired"}': [
      '0+1x30',
      '0x10 1x20',
    ],
  }),
  alertCase('LeaseWitnessDurabilityWeak', { mode: 'asynchronous' }, '10m', {
    'lease_witness_database_durability{mode="asynchronous"}': ['1x15', '0x15'],
  }),
]
