-- The complete schema, applied at every start. Each statement does nothing if its object exists.
-- Text columns that are compared or sorted have collation "C", so their byte order is the same on every server.

-- At most one row per name; its lock orders everything that happens to the name. A name is free if it has no row, or if
-- its reservation has expired or it was released, its cool-off is over, and no lineage holds it. A released row exists
-- only during the cool-off or while a lineage holds the name. Clients do not see it.
create table if not exists pool_allocations (
  pool_domain text collate "C" not null,
  subdomain text collate "C" not null,
  state text collate "C" not null,
  reserved_at timestamptz not null,
  expires_at timestamptz,
  -- Until then, only the client whose active name was released can reserve it. A reservation with the former token keeps
  -- the time, so that the name does not become free earlier.
  cool_off_until timestamptz,
  -- The lineage that has infrastructure under the name. The name is not free while it is set.
  lineage_id uuid,
  -- The state of the row that this reservation replaced. Only the statement that wrote it reads it, for the history.
  replaced_state text collate "C",
  -- SHA-256 of the reservation token.
  token_hash bytea not null,
  -- SHA-256 of the token that took the name back during its cool-off. It stays valid for that until a commit, because the
  -- client may not have received the new one.
  former_token_hash bytea,
  created_by text not null,
  sovereign_fqdn text,
  load_balancer_ip inet,
  committed_at timestamptz,
  constraint pool_allocations_pkey primary key (pool_domain, subdomain),
  constraint pool_allocations_pool_domain_check check (
    pool_domain ~ '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$' and length(pool_domain) <= 253
  ),
  constraint pool_allocations_subdomain_check check (
    subdomain ~ '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$' and substr(subdomain, 3, 2) <> '--'
  ),
  constraint pool_allocations_token_hash_check check (length(token_hash) = 32),
  constraint pool_allocations_former_token_hash_check check (length(former_token_hash) = 32),
  constraint pool_allocations_created_by_check check (length(created_by) <= 253),
  -- `pool`: no client can have the name, because it is at or above a pool.
  constraint pool_allocations_state_check check (state in ('pool', 'reserved', 'active', 'released')),
  constraint pool_allocations_replaced_state_check check (replaced_state in ('reserved', 'released')),
  constraint pool_allocations_reserved_columns_check check (
    state <> 'reserved'
    or (expires_at is not null and expires_at > reserved_at
        and num_nonnulls(sovereign_fqdn, load_balancer_ip, committed_at) = 0)
  ),
  constraint pool_allocations_active_columns_check check (
    state <> 'active'
    or (expires_at is null and cool_off_until is null
        and num_nulls(sovereign_fqdn, load_balancer_ip, committed_at) = 0 and committed_at >= reserved_at)
  ),
  constraint pool_allocations_released_columns_check check (
    state <> 'released' or (expires_at is null and num_nonnulls(lineage_id, cool_off_until) > 0)
  ),
  constraint pool_allocations_pool_columns_check check (
    state <> 'pool' or num_nonnulls(expires_at, sovereign_fqdn, load_balancer_ip, committed_at) = 0
  ),
  constraint pool_allocations_load_balancer_ip_check check (family(load_balancer_ip) = 4 and masklen(load_balancer_ip) = 32)
);

-- For the sweeper: free names, the first ones that became free first.
create index if not exists pool_allocations_free_idx on pool_allocations (greatest(expires_at, cool_off_until))
  where state <> 'active' and lineage_id is null;

create index if not exists pool_allocations_pool_idx on pool_allocations (reserved_at) where state = 'pool';

-- The pools that the replicas list. Each replica confirms its own; a pool that none has confirmed for a while is unlisted.
create table if not exists pools (
  domain text collate "C" not null,
  listed_at timestamptz not null,
  constraint pools_pkey primary key (domain)
);

create table if not exists allocation_history (
  id bigint generated always as identity,
  pool_domain text collate "C" not null,
  subdomain text collate "C" not null,
  at timestamptz not null default clock_timestamp(),
  event text not null,
  from_state text not null,
  to_state text not null,
  actor text not null,
  address text,
  created_by text not null,
  request_id text,
  detail text,
  -- Record sets of other writers that were deleted because the name had been released.
  deleted_records jsonb,
  constraint allocation_history_pkey primary key (id),
  constraint allocation_history_actor_check check (actor in ('in-cluster', 'operator', 'sweeper', 'convergence', 'deployment')),
  constraint allocation_history_transition_check check (
    (event, from_state, to_state) in (
      ('reserved', 'none', 'reserved'),
      ('renewed', 'reserved', 'reserved'),
      ('committed', 'reserved', 'active'),
      ('updated', 'active', 'active'),
      ('republished', 'active', 'active'),
      ('released', 'reserved', 'none'),
      ('released', 'active', 'none'),
      ('expired', 'reserved', 'none'),
      ('cool-off-lifted', 'none', 'none'),
      ('published', 'active', 'active'),
      ('withdrawn', 'none', 'none'),
      ('failing', 'active', 'active'),
      ('failing', 'none', 'none'),
      ('repaired', 'active', 'active'),
      ('repaired', 'none', 'none')
    )
  )
);

create index if not exists allocation_history_name_idx on allocation_history (pool_domain, subdomain, id);
create index if not exists allocation_history_pool_domain_idx on allocation_history (pool_domain, id);

create or replace function reject_history_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'integrity_constraint_violation';
end
$$;

create or replace trigger allocation_history_append_only
  before update or delete or truncate on allocation_history
  for each statement execute function reject_history_change();

-- Requests with an Idempotency-Key, which is a secret of its client: only a hash of it is stored. `fingerprint` is the SHA-256 of the request. `revision` is an optimistic lock: the
-- request that increments it executes again, because the stored result no longer holds.
create table if not exists idempotency_keys (
  key_hash bytea not null,
  fingerprint bytea not null,
  revision integer not null default 1,
  expires_at timestamptz not null,
  constraint idempotency_keys_pkey primary key (key_hash),
  constraint idempotency_keys_key_hash_check check (length(key_hash) = 32),
  constraint idempotency_keys_fingerprint_check check (length(fingerprint) = 32)
);

create index if not exists idempotency_keys_expires_at_idx on idempotency_keys (expires_at);

-- The result of each keyed request, stored by the statement that produced it. `sealed` is the token that the client got
-- with it, encrypted under a key that is derived from the Idempotency-Key and `salt`.
create table if not exists idempotency_results (
  key_hash bytea not null,
  result jsonb not null,
  salt bytea,
  sealed bytea,
  constraint idempotency_results_pkey primary key (key_hash),
  constraint idempotency_results_key_hash_fkey foreign key (key_hash) references idempotency_keys on delete cascade,
  constraint idempotency_results_sealed_check check ((salt is null) = (sealed is null))
);

-- The session that holds the row lock is the only writer of what the row names: a zone, or every zone of an account.
create table if not exists dns_zone_locks (
  name text collate "C" not null,
  constraint dns_zone_locks_pkey primary key (name)
);

-- Every zone that was ever written: when it last had all desired records, and when the next drift check is due.
create table if not exists dns_zones (
  zone text collate "C" not null,
  synced_at timestamptz,
  drift_checked_at timestamptz,
  next_drift_check_at timestamptz not null,
  constraint dns_zones_pkey primary key (zone)
);

-- One counter for all names: a version is never used twice, not even by a name that was deleted in between.
create sequence if not exists dns_version as bigint;

-- The desired records of each name, and which version of them the provider has. The row of a withdrawn name stays
-- until a later drift check finds none of its records.
create table if not exists dns_names (
  zone text collate "C" not null,
  subdomain text collate "C" not null,
  version bigint not null,
  desired jsonb not null,
  changed_at timestamptz not null,
  -- The newest version that a write was started for. If it is above applied_version, that write was not confirmed and
  -- may still take effect.
  attempted_version bigint not null default 0,
  applied_version bigint not null default 0,
  applied_at timestamptz,
  -- Name and type of every record set that the provider accepted from this service. The service owns them even if
  -- another writer has edited them. Unless the name is purged, it changes and deletes only these, the `previous_records`
  -- and, while a write is not confirmed, the `desired` ones.
  owned jsonb not null default '[]',
  -- Record sets that were desired before, written or not. A timed-out write can still take effect, so the service owns
  -- them, with exactly these values, until a drift check has found none of them.
  previous_records jsonb not null default '[]',
  -- Consecutive failures of the same cause.
  attempts integer not null default 0,
  next_attempt_at timestamptz not null,
  failure text,
  last_error text,
  -- Until this version or a newer one is applied, every record set at or below the name is deleted unless it is desired,
  -- whichever writer created it: the name had an earlier holder. A name without desired records is always treated so.
  purge_version bigint not null default 0,
  -- Record sets that are deleted for that reason and that this service did not write, from before the write until the
  -- history lists them.
  deleted_records jsonb not null default '[]',
  -- This version was created because a drift check found that the provider no longer had the previous one.
  is_drift_repair boolean not null default false,
  constraint dns_names_pkey primary key (zone, subdomain),
  constraint dns_names_desired_check check (jsonb_typeof(desired) = 'array'),
  constraint dns_names_owned_check check (jsonb_typeof(owned) = 'array'),
  constraint dns_names_previous_records_check check (jsonb_typeof(previous_records) = 'array'),
  constraint dns_names_deleted_records_check check (jsonb_typeof(deleted_records) = 'array'),
  constraint dns_names_applied_version_check check (applied_version <= version),
  constraint dns_names_failure_check check (failure in ('provider', 'zone', 'rejected', 'foreign-record')),
  constraint dns_names_error_present_check check (
    (attempts = 0) = (last_error is null) and (attempts = 0) = (failure is null)
  ),
  constraint dns_names_applied_no_error_check check (applied_version < version or attempts = 0)
);

create index if not exists dns_names_due on dns_names (next_attempt_at) where applied_version < version;
create index if not exists dns_names_pending on dns_names (zone, changed_at) where applied_version < version;

-- The infrastructure of one tenant under an FQDN. Its id is the key of the Terraform state. It outlives the deployment.
create table if not exists lineages (
  id uuid not null,
  sovereign_fqdn text collate "C" not null,
  -- Null if the domain is the customer's own.
  pool_domain text collate "C",
  subdomain text collate "C",
  -- Whether the state may hold more than the kept bucket. Set before Terraform starts, cleared after the state was read.
  has_infrastructure boolean not null default false,
  infrastructure_changed_at timestamptz not null,
  -- The state was moved to the archive: the infrastructure is the operator's responsibility.
  archived_at timestamptz,
  -- The lock of the state that a run took and is not known to have released.
  state_lock jsonb,
  -- What Terraform calls the lineage of the state, and a serial that the state has reached. Null: no apply has started since
  -- the state was empty.
  known_state jsonb,
  created_at timestamptz not null,
  constraint lineages_pkey primary key (id),
  constraint lineages_name_check check ((pool_domain is null) = (subdomain is null))
);

-- At most one lineage of an FQDN has infrastructure.
create unique index if not exists lineages_fqdn_unique on lineages (sovereign_fqdn)
  where has_infrastructure and archived_at is null;

-- The lineage that each bucket belongs to; two FQDNs can give the same bucket name. A claim is permanent once the bucket
-- may exist: a bucket outlives its deployments and must not be given to another tenant.
create table if not exists bucket_claims (
  bucket text collate "C" not null,
  lineage_id uuid not null,
  sovereign_fqdn text collate "C" not null,
  is_permanent boolean not null default false,
  -- Whether a run of the lineage is known to have created the bucket. Only then it may be imported.
  is_created boolean not null default false,
  claimed_at timestamptz not null,
  constraint bucket_claims_pkey primary key (bucket),
  constraint bucket_claims_lineage_id_fkey foreign key (lineage_id) references lineages,
  constraint bucket_claims_bucket_check check (bucket ~ '^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$')
);

create index if not exists bucket_claims_lineage_id_idx on bucket_claims (lineage_id);
create index if not exists bucket_claims_fqdn_idx on bucket_claims (sovereign_fqdn) where is_permanent;

create table if not exists deployments (
  id uuid not null,
  number bigint generated always as identity,
  lineage_id uuid not null,
  status text collate "C" not null,
  -- What the current or last run does.
  operation text collate "C" not null default 'create',
  -- The request without its credentials.
  request jsonb not null,
  sovereign_fqdn text collate "C" not null,
  -- SHA-256 of the token of its name's reservation; null if the domain is the customer's own.
  reservation_token_hash bytea,
  -- SHA-256 of the token that the client got when it created the deployment.
  token_hash bytea not null,
  -- The outputs of the last successful apply.
  result jsonb,
  -- The module that the last apply used: its name and a hash of its content.
  module text,
  -- Whether the current operation has applied the module: `result` has its outputs.
  is_applied boolean not null default false,
  -- The reason for a failure that is decided but not finished: the name is released between the two.
  pending_error text,
  error text,
  started_at timestamptz not null,
  finished_at timestamptz,
  cancelled_at timestamptz,
  -- An operator abandons the infrastructure: no other call is accepted any more.
  abandoned_at timestamptz,
  line_count integer not null default 0,
  -- The lease of the current run. Each claim starts a new generation and fences the writes of the earlier ones.
  run_generation integer not null default 1,
  run_expires_at timestamptz,
  -- The generation of the first run of the current operation.
  operation_generation integer not null default 1,
  constraint deployments_pkey primary key (id),
  constraint deployments_number_key unique (number),
  constraint deployments_lineage_id_fkey foreign key (lineage_id) references lineages,
  constraint deployments_status_check check (
    status in ('pending', 'provisioning', 'ready', 'failed', 'destroying', 'destroyed')
  ),
  constraint deployments_token_hash_check check (length(token_hash) = 32),
  constraint deployments_reservation_token_hash_check check (length(reservation_token_hash) = 32),
  constraint deployments_operation_check check (operation in ('create', 'apply', 'destroy')),
  constraint deployments_finished_at_check check (
    (status in ('ready', 'failed', 'destroyed')) = (finished_at is not null)
    and (finished_at is null) = (run_expires_at is not null)
  ),
  constraint deployments_error_present_check check ((status = 'failed') = (error is not null)),
  constraint deployments_result_present_check check (status <> 'ready' or result is not null),
  -- Credentials are never stored.
  constraint deployments_credentials_redacted_check check (
    coalesce(request ->> 'objectStorageAccessKey', 'absent') in ('', '<redacted>')
    and coalesce(request ->> 'objectStorageSecretKey', 'absent') in ('', '<redacted>')
  )
);

-- At most one deployment of an FQDN is ready or becomes ready.
create unique index if not exists deployments_fqdn_unique on deployments (sovereign_fqdn)
  where status in ('pending', 'provisioning', 'ready');
-- Unfinished deployments by the end of their lease: the first ones are orphaned.
create index if not exists deployments_orphaned on deployments (run_expires_at) where finished_at is null;
create index if not exists deployments_lineage_id_idx on deployments (lineage_id);

-- Values of TXT records that prove the control of a domain, as SHA-256. A value is bound to the lineage that used it.
create table if not exists domain_challenges (
  value_hash bytea not null,
  domain text collate "C" not null,
  -- Only a request with this Idempotency-Key can use it; null: any request.
  key_hash bytea,
  lineage_id uuid,
  expires_at timestamptz not null,
  constraint domain_challenges_pkey primary key (value_hash),
  constraint domain_challenges_value_hash_check check (length(value_hash) = 32),
  constraint domain_challenges_key_hash_check check (length(key_hash) = 32)
);

create index if not exists domain_challenges_expires_at_idx on domain_challenges (expires_at);

-- What was done to deployments, who did it and from where. It outlives the deployments.
create table if not exists deployment_history (
  id bigint generated always as identity,
  at timestamptz not null default clock_timestamp(),
  event text not null,
  deployment_id uuid not null,
  lineage_id uuid not null,
  sovereign_fqdn text collate "C" not null,
  org_name text not null,
  actor text not null,
  address text,
  request_id text,
  detail text,
  constraint deployment_history_pkey primary key (id),
  constraint deployment_history_event_check check (
    event in (
      'created', 'apply-requested', 'destroy-requested', 'cancelled', 'abandoned', 'deleted', 'unlocked',
      'bucket-claim-lifted', 'ready', 'failed', 'destroyed'
    )
  ),
  constraint deployment_history_actor_check check (actor in ('in-cluster', 'operator', 'deployment'))
);

create index if not exists deployment_history_deployment_id_idx on deployment_history (deployment_id, id);
create index if not exists deployment_history_sovereign_fqdn_idx on deployment_history (sovereign_fqdn, id);

create or replace trigger deployment_history_append_only
  before update or delete or truncate on deployment_history
  for each statement execute function reject_history_change();

create table if not exists deployment_log_lines (
  deployment_id uuid not null,
  seq integer not null,
  at timestamptz not null,
  phase text not null,
  level text not null,
  message text not null,
  constraint deployment_log_lines_pkey primary key (deployment_id, seq),
  constraint deployment_log_lines_deployment_id_fkey foreign key (deployment_id) references deployments on delete cascade
);
