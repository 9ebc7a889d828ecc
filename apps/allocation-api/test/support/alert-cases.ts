/** Values by name and labels, without the label `job` of the service: one a minute in promtool's notation. */
type Series = Readonly<Record<string, string>>

interface AlertCase {
  readonly alert: string
  /** When it is looked at, such as `10m`. */
  readonly at: string
  /** What the alert has beside its severity. */
  readonly labels: Readonly<Record<string, string>>
  /** The values with which the alert fires, and similar ones with which it does not. Null: none. */
  readonly series: Readonly<Record<string, readonly [fires: string | null, silent: string | null]>>
}

const cases: readonly AlertCase[] = [
  {
    alert: 'AllocationApiDown',
    at: '10m',
    labels: { job: 'allocation-api' },
    // One replica is left.
    series: {
      'up{instance="a"}': ['1x5 0x10', '0x15'],
      'up{instance="b"}': ['0x15', '1x15'],
    },
  },
  {
    alert: 'AllocationApiReplicaDown',
    at: '12m',
    labels: { job: 'allocation-api', instance: 'a' },
    // A restart of three minutes.
    series: {
      'up{instance="a"}': ['1x5 0x10', '1x5 0x3 1x10'],
      'up{instance="b"}': ['1x15', null],
    },
  },
  {
    alert: 'AllocationApiNotReady',
    at: '10m',
    labels: { job: 'allocation-api', instance: 'a' },
    // The database is unavailable for all, which is another alert.
    series: {
      'pdm_ready{instance="a"}': ['0x15', '0x15'],
      'pdm_database_accepts_writes{instance="a"}': ['0x15', '0x15'],
      'pdm_ready{instance="b"}': ['1x15', null],
      'pdm_database_accepts_writes{instance="b"}': ['1x15', null],
    },
  },
  {
    alert: 'AllocationApiErrors',
    at: '15m',
    labels: { job: 'allocation-api' },
    series: {
      'pdm_http_request_duration_seconds_count{route="/api/v1/pool/:domain/reserve", status="201"}': [
        '0+90x20',
        '0+97x20',
      ],
      'pdm_http_request_duration_seconds_count{route="/api/v1/pool/:domain/reserve", status="500"}': [
        '0+10x20',
        '0+3x20',
      ],
    },
  },
  {
    alert: 'AllocationApiSlow',
    at: '25m',
    labels: { job: 'allocation-api' },
    series: {
      'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="1"}': ['0+90x30', '0+100x30'],
      'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="2.5"}': [
        '0+100x30',
        '0+100x30',
      ],
      'pdm_http_request_duration_seconds_bucket{route="/api/v1/pool/:domain/reserve", le="+Inf"}': [
        '0+100x30',
        '0+100x30',
      ],
    },
  },
  {
    alert: 'AllocationApiEventLoopSaturated',
    at: '25m',
    labels: { job: 'allocation-api', instance: 'a' },
    series: {
      'pdm_event_loop_active_seconds_total{instance="a"}': ['0+57x30', '0+48x30'],
    },
  },
  {
    alert: 'AllocationApiReplicasDiffer',
    at: '80m',
    labels: { job: 'allocation-api' },
    series: {
      'pdm_build_info{instance="a", version="1.0.0", node="v24.8.0", dns_provider="powerdns"}': ['1x90', '1x90'],
      'pdm_build_info{instance="b", version="1.0.0", node="v24.8.0", dns_provider="local"}': ['1x90', null],
      'pdm_build_info{instance="b", version="1.0.0", node="v24.8.0", dns_provider="powerdns"}': [null, '1x90'],
    },
  },
  {
    alert: 'AllocationApiDatabaseUnavailable',
    at: '10m',
    labels: { job: 'allocation-api' },
    // Only one replica does not reach it.
    series: {
      'pdm_database_accepts_writes{instance="a"}': ['1x5 0x10', '0x15'],
      'pdm_database_accepts_writes{instance="b"}': ['1x5 0x10', '1x15'],
    },
  },
  {
    alert: 'AllocationApiDatabaseDurabilityWeak',
    at: '10m',
    labels: { mode: 'asynchronous' },
    series: {
      'pdm_database_durability{mode="synchronous"}': ['0x15', '0x15'],
      'pdm_database_durability{mode="single"}': ['0x15', '1x15'],
      'pdm_database_durability{mode="asynchronous"}': ['1x15', '0x15'],
      'pdm_database_durability{mode="volatile"}': ['0x15', '0x15'],
    },
  },
  {
    alert: 'AllocationApiDatabaseConnectionsExhausted',
    at: '10m',
    labels: { job: 'allocation-api' },
    series: {
      pdm_database_connections: ['95x15', '60x15'],
      pdm_database_max_connections: ['97x15', '97x15'],
    },
  },
  {
    alert: 'AllocationApiExpiredSweeperStalled',
    at: '30m',
    labels: { job: 'allocation-api' },
    // Another replica sweeps.
    series: {
      'pdm_sweeper_last_run_timestamp_seconds{instance="a"}': ['0x40', '0x40'],
      'pdm_sweeper_last_run_timestamp_seconds{instance="b"}': [null, '0+60x40'],
    },
  },
  {
    alert: 'AllocationApiZoneNotInSync',
    at: '15m',
    labels: { zone: 'pool.example' },
    series: {
      'pdm_dns_oldest_pending_seconds{instance="a", zone="pool.example"}': ['0+60x20', '0 60 120 180 240 0x20'],
      'pdm_dns_oldest_pending_seconds{instance="b", zone="pool.example"}': ['0+60x20', null],
    },
  },
  {
    alert: 'AllocationApiPendingNamesBacklog',
    at: '15m',
    labels: { zone: 'pool.example' },
    series: {
      'pdm_dns_pending_names{instance="a", zone="pool.example"}': ['5000x20', '5000x5 800x15'],
      'pdm_dns_pending_names{instance="b", zone="pool.example"}': ['5000x20', null],
    },
  },
  {
    alert: 'AllocationApiZoneNamesFailing',
    at: '20m',
    labels: { zone: 'pool.example', cause: 'provider' },
    series: {
      'pdm_dns_failing_names{zone="pool.example", cause="provider"}': ['3x30', '3x10 0x20'],
    },
  },
  {
    alert: 'AllocationApiZoneConflict',
    at: '10m',
    labels: { zone: 'pool.example' },
    series: {
      'pdm_dns_failing_names{zone="pool.example", cause="foreign-record"}': ['1x15', '0x15'],
      'pdm_dns_failing_names{zone="pool.example", cause="provider"}': [null, '1x15'],
    },
  },
  {
    alert: 'AllocationApiZoneStopped',
    at: '8m',
    labels: { zone: 'pool.example', cause: 'database-older' },
    // The zone was resumed.
    series: {
      'pdm_dns_zone_stopped{zone="pool.example", cause="database-older"}': ['1x10', '1 _x10'],
    },
  },
  {
    alert: 'AllocationApiZoneSyncStalled',
    at: '15m',
    labels: { zone: 'pool.example' },
    // Syncs end, but the changes are many.
    series: {
      'pdm_dns_oldest_pending_seconds{zone="pool.example"}': ['0+60x20', '0+60x20'],
      'pdm_dns_syncs_total{zone="pool.example", outcome="done"}': ['7x20', '0+1x20'],
      'pdm_dns_syncs_total{zone="pool.example", outcome="busy"}': ['0+2x20', null],
      'pdm_dns_failing_names{zone="pool.example", cause="provider"}': ['0x20', '0x20'],
    },
  },
  {
    alert: 'AllocationApiZoneDriftRepeated',
    at: '100m',
    labels: { zone: 'pool.example' },
    // One edit of five names.
    series: {
      'pdm_dns_drifted_names_total{zone="pool.example"}': ['0x30 1x60 2x60', '0x30 5x120'],
    },
  },
  {
    alert: 'AllocationApiDriftChecksFailing',
    at: '80m',
    labels: { zone: 'pool.example' },
    // A later check succeeded.
    series: {
      'pdm_dns_drift_checks_total{zone="pool.example", outcome="unavailable"}': ['0+1x90', '0+1x20 20x70'],
      'pdm_dns_drift_checks_total{zone="pool.example", outcome="compared"}': ['4x90', '4x40 5x50'],
    },
  },
  {
    alert: 'AllocationApiDriftCheckOverdue',
    at: '70m',
    labels: { zone: 'pool.example' },
    series: {
      'pdm_dns_last_drift_check_timestamp_seconds{zone="pool.example"}': ['0x90', '0x30 1800x60'],
    },
  },
  {
    alert: 'AllocationApiDnsCircuitOpen',
    at: '8m',
    labels: { job: 'allocation-api' },
    series: {
      'pdm_dns_circuit_open{instance="a"}': ['1x10', '1x3 0x10'],
      'pdm_dns_circuit_open{instance="b"}': ['0x10', null],
    },
  },
  {
    alert: 'AllocationApiPoolDraining',
    at: '1450m',
    labels: { pool: 'old.example' },
    series: {
      'pdm_pool_draining{pool="old.example"}': ['1x1500', '1x600 _x900'],
    },
  },
  {
    alert: 'AllocationApiDeploymentsFailing',
    at: '40m',
    labels: { job: 'allocation-api' },
    series: {
      'pdm_deployment_duration_seconds_count{outcome="failed"}': ['0x5 1x5 2x5 3x60', '0x5 1x70'],
      'pdm_deployment_duration_seconds_count{outcome="ready"}': ['0+1x80', '0+1x80'],
    },
  },
  {
    alert: 'AllocationApiDeploymentsQueued',
    at: '35m',
    labels: { job: 'allocation-api' },
    series: {
      'pdm_deployments{status="pending"}': ['4x40', '4x20 0x20'],
    },
  },
  {
    alert: 'AllocationApiDeploymentsDiskFull',
    at: '8m',
    labels: { job: 'allocation-api', instance: 'a' },
    series: {
      'pdm_deployments_dir_free_bytes{instance="a"}': ['500000000x10', '5000000000x10'],
    },
  },
  {
    alert: 'AllocationApiCredentialChecksUnavailable',
    at: '30m',
    labels: { kind: 'token' },
    series: {
      'pdm_credential_validations_total{kind="token", outcome="unavailable"}': ['0+3x40', '0+1x40'],
      'pdm_credential_validations_total{kind="token", outcome="accepted"}': ['0+1x40', '0+3x40'],
    },
  },
  {
    alert: 'AllocationApiTokenGuessing',
    at: '15m',
    labels: { operation: 'commit' },
    series: {
      'pdm_operations_total{operation="commit", outcome="token-mismatch"}': ['0+30x20', '0+3x20'],
    },
  },
  {
    alert: 'LeaseWitnessDown',
    at: '8m',
    labels: { job: 'lease-witness' },
    series: {
      'up{instance="a"}': ['1x5 0x10', '0x15'],
      'up{instance="b"}': [null, '1x15'],
    },
  },
  {
    alert: 'LeaseWitnessDown',
    at: '8m',
    labels: { job: 'lease-witness' },
    // The target is gone.
    // An installation without a witness.
    series: {
      up: ['1x5 stale', null],
      'up{job="allocation-api", instance="a"}': [null, '1x15'],
    },
  },
  {
    alert: 'LeaseWitnessNotReady',
    at: '8m',
    labels: { job: 'lease-witness' },
    series: {
      lease_witness_ready: ['1x5 0x10', '1x15'],
    },
  },
  {
    alert: 'LeaseWitnessErrors',
    at: '10m',
    labels: { job: 'lease-witness' },
    series: {
      'lease_witness_http_request_duration_seconds_count{route="/lease/:slot", status="200"}': ['0+90x15', '0+98x15'],
      'lease_witness_http_request_duration_seconds_count{route="/lease/:slot", status="503"}': ['0+10x15', '0+2x15'],
    },
  },
  {
    alert: 'LeaseWitnessLateRenewals',
    at: '20m',
    labels: { job: 'lease-witness' },
    series: {
      'lease_witness_operations_total{method="PUT", route="/lease/:slot", outcome="rejected-expired"}': [
        '0+1x30',
        '0x10 1x20',
      ],
    },
  },
  {
    alert: 'LeaseWitnessDurabilityWeak',
    at: '10m',
    labels: { mode: 'asynchronous' },
    series: {
      'lease_witness_database_durability{mode="asynchronous"}': ['1x15', '0x15'],
    },
  },
]

const select = (series: AlertCase['series'], index: 0 | 1): Series =>
  Object.fromEntries(
    Object.entries(series).flatMap(([name, values]) => (values[index] === null ? [] : [[name, values[index]]])),
  )

export const alertCases = cases.map(({ series, ...rest }) => ({
  ...rest,
  fires: select(series, 0),
  silent: select(series, 1),
}))
