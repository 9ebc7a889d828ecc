-- Oldest build: 8

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

-- A sample of a process every ten seconds, for a week: 60,480 rows or 10 MB for a process that runs all the time. Counters count
-- from the start of the process.
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

-- How many names each pool has, once a minute at most, by whichever process counted first: 10,080 rows or 1 MB per pool and week.
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
