-- Oldest build: 1
-- Text columns that are compared or sorted have collation "C", so their byte order is the same on every server.
--
-- The rules of the tables that requests write are in one function per table, which is its only constraint: Postgres parses
-- the stored expressions of all constraints of a table again in each statement, and a function once per session. The
-- function raises the error of a constraint that is named after the broken rule. A null is valid where a rule compares it, as
-- in a constraint.

-- The last step of a statement that must not take effect after its caller has timed out. `written` is an expression over
-- the parts of the statement that write: it is evaluated first, so the statement waits for no lock after this function.
-- `server` is the start of the server process by whose clock the deadline was calculated. The service knows the SQLSTATEs.
create function assert_in_time(server text, deadline_ms double precision, written bigint) returns boolean
language plpgsql volatile as $$
begin
  if extract(epoch from pg_postmaster_start_time())::text <> server then
    raise exception 'the deadline is for another server' using errcode = '57PD1';
  end if;
  if extract(epoch from clock_timestamp()) * 1000 >= deadline_ms then
    raise exception 'the deadline of the request has passed' using errcode = '57PD2';
  end if;
  return true;
end
$$;

-- At most one row per name; its lock orders everything that happens to the name. A name is free if it has no row, or if
-- its reservation has expired or it was released, its cool-off is over, and no lineage holds it. A released row exists
-- only during the cool-off or while a lineage holds the name. Clients do not see it.
create table pool_allocations (
  pool_domain text collate "C" not null,
  subdomain text collate "C" not null,
  -- `pool`: no client can have the name, because it is at or above a pool.
  state text collate "C" not null,
  reserved_at timestamptz not null,
  expires_at timestamptz,
  -- Until then, only the client whose active name was released can reserve it. A reservation with the former token keeps
  -- the time, so that the name does not become free earlier.
  cool_off_until timestamptz,
  -- Renewals are counted instead of written to the history.
  renewal_count integer not null default 0,
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
  constraint pool_allocations_pkey primary key (pool_domain, subdomain)
);

-- The argument is the row and not its columns, so that the stored expression is short. The rules of each state are
-- expressions of their own: PL/pgSQL prepares each expression that it evaluates again in each transaction. A bounded
-- repetition of a regular expression has a state for each of its repetitions; a separate bound of the length has none.
create function check_pool_allocation(a pool_allocations) returns boolean
language plpgsql immutable parallel safe as $$
declare
  broken_rule text := case
    when a.pool_domain !~ '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$' collate "C" or length(a.pool_domain) > 253 then 'pool_domain'
    when a.subdomain !~ '^[a-z]([a-z0-9-]*[a-z0-9])?$' collate "C" or length(a.subdomain) > 63
      or substr(a.subdomain, 3, 2) = '--' then 'subdomain'
    when length(a.token_hash) <> 32 then 'token_hash'
    when length(a.former_token_hash) <> 32 then 'former_token_hash'
    when length(a.created_by) > 253 then 'created_by'
    when family(a.load_balancer_ip) <> 4 or masklen(a.load_balancer_ip) <> 32 then 'load_balancer_ip'
    when a.replaced_state not in ('reserved', 'released') then 'replaced_state'
  end;
begin
  if broken_rule is null then
    if a.state = 'reserved' then
      if a.expires_at is null or a.expires_at <= a.reserved_at
        or num_nonnulls(a.sovereign_fqdn, a.load_balancer_ip, a.committed_at) > 0
      then broken_rule := 'reserved_columns'; end if;
    elsif a.state = 'active' then
      if num_nonnulls(a.expires_at, a.cool_off_until) > 0
        or num_nulls(a.sovereign_fqdn, a.load_balancer_ip, a.committed_at) > 0 or a.committed_at < a.reserved_at
      then broken_rule := 'active_columns'; end if;
    elsif a.state = 'released' then
      if a.expires_at is not null or num_nonnulls(a.lineage_id, a.cool_off_until) = 0
      then broken_rule := 'released_columns'; end if;
    elsif a.state = 'pool' then
      if num_nonnulls(a.expires_at, a.sovereign_fqdn, a.load_balancer_ip, a.committed_at) > 0
      then broken_rule := 'pool_columns'; end if;
    else
      broken_rule := 'state';
    end if;
  end if;
  if broken_rule is null then return true; end if;
  raise check_violation using
    message = format('new row for relation "pool_allocations" violates check constraint "pool_allocations_%s_check"', broken_rule),
    table = 'pool_allocations', constraint = format('pool_allocations_%s_check', broken_rule);
end
$$;

alter table pool_allocations
  add constraint pool_allocations_check check (check_pool_allocation(pool_allocations));

-- For the sweeper: free names, the first ones that became free first.
create index pool_allocations_free_idx on pool_allocations (greatest(expires_at, cool_off_until))
  where state <> 'active' and lineage_id is null;

create index pool_allocations_pool_idx on pool_allocations (reserved_at) where state = 'pool';

-- The searches of operators. Each index has the order of its list, so that a page reads only its own rows.
create index pool_allocations_address_idx on pool_allocations (load_balancer_ip, pool_domain, subdomain)
  where state = 'active';
create index pool_allocations_created_by_idx on pool_allocations (created_by collate "C", pool_domain, subdomain)
  where state <> 'pool';
create index pool_allocations_reserved_idx on pool_allocations (pool_domain, subdomain) where state = 'reserved';
create index pool_allocations_cool_off_idx on pool_allocations (pool_domain, subdomain)
  where lineage_id is null and cool_off_until is not null;
create index pool_allocations_held_idx on pool_allocations (pool_domain, subdomain)
  where lineage_id is not null and state <> 'active';

-- The pools that the replicas list. Each replica confirms its own; a pool that none has confirmed for a while is unlisted.
create table pools (
  domain text collate "C" not null,
  listed_at timestamptz not null,
  constraint pools_pkey primary key (domain)
);

create function check_history_entry(event text, from_state text, to_state text, actor text) returns boolean
language plpgsql immutable parallel safe as $$
declare
  broken_rule text := case
    when actor not in ('in-cluster', 'operator', 'sweeper', 'convergence', 'deployment') then 'actor'
    when event || ': ' || from_state || ' to ' || to_state not in (
      'reserved: none to reserved',
      'renewed: reserved to reserved',
      'committed: reserved to active',
      'updated: active to active',
      'republished: active to active',
      'released: reserved to none',
      'released: active to none',
      'expired: reserved to none',
      'cool-off-lifted: none to none',
      'adopted: none to active',
      'orphan-removed: none to none',
      'published: active to active',
      'withdrawn: none to none',
      'failing: active to active',
      'failing: none to none',
      'repaired: active to active',
      'repaired: none to none'
    ) then 'transition'
  end;
begin
  if broken_rule is null then return true; end if;
  raise check_violation using
    message = format('new row for relation "allocation_history" violates check constraint "allocation_history_%s_check"', broken_rule),
    table = 'allocation_history', constraint = format('allocation_history_%s_check', broken_rule);
end
$$;

create table allocation_history (
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
  -- In the entry that ends a renewed reservation: how often it was renewed, and its last expiry.
  renewal_count integer,
  renewed_until timestamptz,
  constraint allocation_history_pkey primary key (id),
  constraint allocation_history_check check (check_history_entry(event, from_state, to_state, actor))
);

create index allocation_history_name_idx on allocation_history (pool_domain, subdomain, id);
create index allocation_history_pool_domain_idx on allocation_history (pool_domain, id);

-- Only the functions below delete history. They set the parameter for as long as they run. They set it in their body,
-- because only a superuser may attach a parameter of its own to a function.
create function reject_history_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and current_setting('allocation_api.deletes_history', true) = 'on' then
    return null;
  end if;
  raise exception '% is append-only', tg_table_name using errcode = 'integrity_constraint_violation';
end
$$;

create trigger allocation_history_append_only
  before update or delete or truncate on allocation_history
  for each statement execute function reject_history_change();

-- Names that were active before, as far as the history no longer shows it: the next holder gets their records purged.
create table former_names (
  pool_domain text collate "C" not null,
  subdomain text collate "C" not null,
  constraint former_names_pkey primary key (pool_domain, subdomain)
);

-- Deletes those of the next `max_entries` entries after `after_id` that are older than `older_than`. `last_id` is null if
-- no further entry can be so old. Entries that another call has locked are skipped. Ids are almost in the order of time.
create function delete_allocation_history(after_id bigint, older_than timestamptz, max_entries integer)
returns table (last_id bigint, deleted integer) language plpgsql as $$
begin
  perform set_config('allocation_api.deletes_history', 'on', true);
  return query
    with page as (
      select id, at from allocation_history where id > after_id order by id limit max_entries
    ),
    due as (
      select h.id from allocation_history h join page on h.id = page.id
      where page.at < older_than for update of h skip locked
    ),
    deleted as (
      delete from allocation_history h using due where h.id = due.id
      returning h.pool_domain, h.subdomain, h.event, h.from_state
    ),
    former as (
      insert into former_names (pool_domain, subdomain)
      select distinct pool_domain, subdomain from deleted where event = 'released' and from_state = 'active'
      order by pool_domain, subdomain
      on conflict do nothing
    )
    select case when count(*) = max_entries and (array_agg(at order by id desc))[1] < older_than then max(id) end,
      (select count(*)::integer from deleted)
    from page;
  perform set_config('allocation_api.deletes_history', 'off', true);
end
$$;

-- Requests with an Idempotency-Key, which is a secret of its client: only a hash of it is stored. `fingerprint` is the
-- SHA-256 of the request. `revision` is an optimistic lock: the request that increments it executes again, because the
-- stored result no longer holds.
create table idempotency_keys (
  key_hash bytea not null,
  fingerprint bytea not null,
  revision integer not null default 1,
  expires_at timestamptz not null,
  constraint idempotency_keys_pkey primary key (key_hash),
  constraint idempotency_keys_key_hash_check check (length(key_hash) = 32),
  constraint idempotency_keys_fingerprint_check check (length(fingerprint) = 32)
);

create index idempotency_keys_expires_at_idx on idempotency_keys (expires_at);

-- The result of each keyed request, stored by the statement that produced it. `sealed` is the token that the client got
-- with it, encrypted under a key that is derived from the Idempotency-Key and `salt`.
create table idempotency_results (
  key_hash bytea not null,
  result jsonb not null,
  salt bytea,
  sealed bytea,
  constraint idempotency_results_pkey primary key (key_hash),
  constraint idempotency_results_key_hash_fkey foreign key (key_hash) references idempotency_keys on delete cascade,
  constraint idempotency_results_sealed_check check ((salt is null) = (sealed is null))
);

-- The session that holds the row lock is the only writer of what the row names: a zone, or every zone of an account.
create table dns_zone_locks (
  name text collate "C" not null,
  constraint dns_zone_locks_pkey primary key (name)
);

-- Every zone that was ever written: when it last had all desired records, and when the next drift check is due.
create table dns_zones (
  zone text collate "C" not null,
  synced_at timestamptz,
  drift_checked_at timestamptz,
  next_drift_check_at timestamptz not null,
  constraint dns_zones_pkey primary key (zone)
);

-- Identifies this database to the zones that it writes. A restored copy has the same id.
create table installation (
  only_row boolean not null default true,
  id uuid not null default gen_random_uuid(),
  constraint installation_pkey primary key (only_row),
  constraint installation_only_row_check check (only_row)
);

insert into installation default values;

-- The writes of each zone. A row stays when its pool is no longer used: the marker in the zone has its number.
create table dns_zone_writes (
  zone text collate "C" not null,
  -- The number of the last write. It is raised before the write, which sets the zone's marker to it. A column and not a
  -- sequence, because a dump or a standby can have a newer value of a sequence than of the tables.
  serial bigint not null default 0,
  -- The provider that the zone was published with; null: none yet.
  provider_kind text collate "C",
  -- Why nothing is written to the zone until an operator resumes it.
  stopped_cause text,
  -- What was changed after that is newer than what the zone has.
  stopped_at timestamptz,
  constraint dns_zone_writes_pkey primary key (zone),
  constraint dns_zone_writes_serial_check check (serial >= 0),
  constraint dns_zone_writes_stopped_cause_check check (
    stopped_cause in ('database-older', 'other-installation', 'imported')
  )
);

-- The records that a provider had when the zone was moved to another one. An operator deletes them there.
create table dns_former_records (
  zone text collate "C" not null,
  provider_kind text collate "C" not null,
  name text collate "C" not null,
  type text collate "C" not null,
  -- The values that this service wrote last; null: unknown.
  record_values jsonb,
  constraint dns_former_records_pkey primary key (zone, provider_kind, name, type)
);

-- One counter for all names: a version is never used twice, not even by a name that was deleted in between.
create sequence dns_version as bigint;

create function check_dns_name(
  version bigint, applied_version bigint, desired jsonb, owned jsonb, previous_records jsonb, deleted_records jsonb,
  attempts integer, last_error text, failure text
) returns boolean
language plpgsql immutable parallel safe as $$
declare
  broken_rule text := case
    when jsonb_typeof(desired) <> 'array' then 'desired'
    when jsonb_typeof(owned) <> 'array' then 'owned'
    when jsonb_typeof(previous_records) <> 'array' then 'previous_records'
    when jsonb_typeof(deleted_records) <> 'array' then 'deleted_records'
    when applied_version > version then 'applied_version'
    when failure not in (
      'provider', 'zone', 'rejected', 'foreign-record', 'database-older', 'other-installation', 'imported'
    ) then 'failure'
    when (attempts = 0) <> (last_error is null) or (attempts = 0) <> (failure is null) then 'error_present'
    when applied_version >= version and attempts <> 0 then 'applied_no_error'
  end;
begin
  if broken_rule is null then return true; end if;
  raise check_violation using
    message = format('new row for relation "dns_names" violates check constraint "dns_names_%s_check"', broken_rule),
    table = 'dns_names', constraint = format('dns_names_%s_check', broken_rule);
end
$$;

-- The desired records of each name, and which version of them the provider has. The row of a withdrawn name stays
-- until a later drift check finds none of its records.
create table dns_names (
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
  constraint dns_names_check check (
    check_dns_name(
      version, applied_version, desired, owned, previous_records, deleted_records, attempts, last_error, failure
    )
  )
);

create index dns_names_due on dns_names (next_attempt_at) where applied_version < version;
create index dns_names_pending on dns_names (zone, changed_at) where applied_version < version;
-- For the lists of operators, as those of `pool_allocations`.
create index dns_names_unpublished_idx on dns_names (zone, subdomain) where applied_version < version;
create index dns_names_failing_idx on dns_names (zone, subdomain)
  where applied_version < version and last_error is not null;

-- The infrastructure of one tenant under an FQDN. Its id is the key of the Terraform state. It outlives the deployment.
create table lineages (
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
create unique index lineages_fqdn_unique on lineages (sovereign_fqdn)
  where has_infrastructure and archived_at is null;

-- The lineage that each bucket belongs to; two FQDNs can give the same bucket name. A claim is permanent once the bucket
-- may exist: a bucket outlives its deployments and must not be given to another tenant.
create table bucket_claims (
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

create index bucket_claims_lineage_id_idx on bucket_claims (lineage_id);
create index bucket_claims_fqdn_idx on bucket_claims (sovereign_fqdn) where is_permanent;

create table deployments (
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
create unique index deployments_fqdn_unique on deployments (sovereign_fqdn)
  where status in ('pending', 'provisioning', 'ready');
-- Unfinished deployments by the end of their lease: the first ones are orphaned.
create index deployments_orphaned on deployments (run_expires_at) where finished_at is null;
create index deployments_lineage_id_idx on deployments (lineage_id);

-- Values of TXT records that prove the control of a domain, as SHA-256. A value is bound to the lineage that used it.
create table domain_challenges (
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

create index domain_challenges_expires_at_idx on domain_challenges (expires_at);

-- What was done to deployments, who did it and from where. It outlives the deployments.
create table deployment_history (
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

create index deployment_history_deployment_id_idx on deployment_history (deployment_id, id);
create index deployment_history_sovereign_fqdn_idx on deployment_history (sovereign_fqdn, id);

create trigger deployment_history_append_only
  before update or delete or truncate on deployment_history
  for each statement execute function reject_history_change();

-- As `delete_allocation_history`. The entry of the creation stays as long as the lineage exists: it says whose the
-- infrastructure is.
create function delete_deployment_history(after_id bigint, older_than timestamptz, max_entries integer)
returns table (last_id bigint, deleted integer) language plpgsql as $$
begin
  perform set_config('allocation_api.deletes_history', 'on', true);
  return query
    with page as (
      select id, at from deployment_history where id > after_id order by id limit max_entries
    ),
    due as (
      select h.id from deployment_history h join page on h.id = page.id
      where page.at < older_than
        and not (h.event = 'created' and exists (select from lineages l where l.id = h.lineage_id))
      for update of h skip locked
    ),
    deleted as (
      delete from deployment_history h using due where h.id = due.id returning h.id
    )
    select case when count(*) = max_entries and (array_agg(at order by id desc))[1] < older_than then max(id) end,
      (select count(*)::integer from deleted)
    from page;
  perform set_config('allocation_api.deletes_history', 'off', true);
end
$$;

create table deployment_log_lines (
  deployment_id uuid not null,
  seq integer not null,
  at timestamptz not null,
  phase text not null,
  level text not null,
  message text not null,
  constraint deployment_log_lines_pkey primary key (deployment_id, seq),
  constraint deployment_log_lines_deployment_id_fkey foreign key (deployment_id) references deployments on delete cascade
);

-- The zones of the provider `local`.
create table local_dns_zones (
  zone text collate "C" not null,
  serial bigint not null,
  constraint local_dns_zones_pkey primary key (zone),
  constraint local_dns_zones_serial_check check (serial between 1 and 4294967295)
);

create table local_dns_record_sets (
  zone text collate "C" not null,
  reversed_name text collate "C" not null,
  type text collate "C" not null,
  ttl integer not null,
  record_values text[] not null,
  constraint local_dns_record_sets_pkey primary key (zone, reversed_name, type),
  constraint local_dns_record_sets_name_is_lower_case check (reversed_name = lower(reversed_name)),
  constraint local_dns_record_sets_ttl_is_not_negative check (ttl >= 0),
  constraint local_dns_record_sets_has_values check (cardinality(record_values) > 0)
);

-- The sessions of the console. The id of a session is a secret of its browser: only a hash of it is stored. `token_mac` is an
-- HMAC of the operator token under the id, so that the row alone reveals nothing about the token.
create table operator_sessions (
  id_hash bytea not null,
  token_mac bytea not null,
  created_at timestamptz not null,
  last_used_at timestamptz not null,
  constraint operator_sessions_pkey primary key (id_hash),
  constraint operator_sessions_id_hash_check check (length(id_hash) = 32),
  constraint operator_sessions_token_mac_check check (length(token_mac) = 32)
);

create index operator_sessions_created_at_idx on operator_sessions (created_at);

-- The processes that stored samples.
create table replicas (
  id uuid not null,
  version text not null,
  node_version text not null,
  started_at timestamptz not null,
  last_seen_at timestamptz not null,
  is_ready boolean not null,
  circuit_open boolean not null,
  constraint replicas_pkey primary key (id)
);

-- A sample of a process every ten seconds, for a week. Counters count from the start of the process.
create table replica_samples (
  replica_id uuid not null,
  at timestamptz not null,
  requests bigint not null,
  errors bigint not null,
  request_ms double precision not null,
  event_loop_ms double precision not null,
  active_runs integer not null,
  pending_names integer not null,
  failing_names integer not null,
  constraint replica_samples_pkey primary key (replica_id, at),
  constraint replica_samples_replica_id_fkey foreign key (replica_id) references replicas on delete cascade
);

create index replica_samples_at_idx on replica_samples (at);

-- How many names each pool has, once a minute at most, by whichever process counted first.
create table pool_samples (
  pool_domain text collate "C" not null,
  at timestamptz not null,
  reserved integer not null,
  active integer not null,
  cooling_off integer not null,
  held integer not null,
  constraint pool_samples_pkey primary key (pool_domain, at)
);

create index pool_samples_at_idx on pool_samples (at);

-- The readiness probe writes here, to find out whether the database accepts writes. Each replica uses one of a fixed
-- number of rows, so that the table does not grow and a locked row affects few replicas.
create table write_probes (
  slot smallint not null,
  written_at timestamptz not null,
  constraint write_probes_pkey primary key (slot)
);
