-- Oldest build: 2
--
-- How often the tokens or the records of the tenant have changed; 0: there are none. It is an optimistic lock: a write that was
-- decided on another revision is decided again. The column and not that of tenant_records, because a statement sees the newest
-- version of the row that it locks, and no other newer than its snapshot.
alter table pool_allocations add column records_revision bigint not null default 0;

-- The tokens with which the tenant of a name sets records. They are valid as long as the name has `reservation_hash` as its
-- token_hash: for one reservation, and not for the label.
create table record_tokens (
  id uuid not null,
  pool_domain text collate "C" not null,
  subdomain text collate "C" not null,
  -- SHA-256 of the token.
  token_digest bytea not null,
  reservation_hash bytea not null,
  scope text not null,
  owner text not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  last_used_on date,
  constraint record_tokens_pkey primary key (id),
  constraint record_tokens_token_digest_key unique (token_digest),
  constraint record_tokens_token_digest_check check (length(token_digest) = 32),
  constraint record_tokens_scope_check check (scope in ('acme', 'records')),
  constraint record_tokens_owner_check check (owner ~ '^[a-z0-9-]{1,63}$')
);

create index record_tokens_name_idx on record_tokens (pool_domain, subdomain);
create index record_tokens_expires_at_idx on record_tokens (expires_at) where expires_at is not null;

-- What the tenant of a name has set. A row exists as long as `records_revision` of the name is not 0, and both are equal.
create table tenant_records (
  pool_domain text collate "C" not null,
  subdomain text collate "C" not null,
  revision bigint not null,
  -- The record sets and the values of challenges, a `StoredRecords`; null: none were ever set.
  records jsonb,
  -- When the desired records have to be derived again, because a value becomes too old.
  due_at timestamptz,
  constraint tenant_records_pkey primary key (pool_domain, subdomain)
);

create index tenant_records_due_at_idx on tenant_records (due_at) where due_at is not null;

-- What a tenant has set ends with the reservation, in the statement that ends it, whichever that is. The condition of the trigger
-- is short, because Postgres parses it again in each statement.
create function follow_reservation() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' or new.token_hash <> old.token_hash or new.state <> old.state and new.state <> 'active' then
    delete from record_tokens where pool_domain = old.pool_domain and subdomain = old.subdomain;
    delete from tenant_records where pool_domain = old.pool_domain and subdomain = old.subdomain;
    if tg_op = 'DELETE' then
      return old;
    end if;
    new.records_revision := 0;
  -- A build before this one derives the desired records of another target without those of the tenant: derive them again.
  elsif new.records_revision = old.records_revision
    and (new.load_balancer_ip is distinct from old.load_balancer_ip or new.target is distinct from old.target)
  then
    update tenant_records set due_at = now() where pool_domain = old.pool_domain and subdomain = old.subdomain;
  end if;
  return new;
end
$$;

create trigger follow_reservation before update or delete on pool_allocations for each row
  when (old.records_revision > 0) execute function follow_reservation();

create or replace function check_history_entry(event text, from_state text, to_state text, actor text) returns boolean
language plpgsql immutable parallel safe as $$
declare
  broken_rule text := case
    when actor not in ('in-cluster', 'operator', 'sweeper', 'convergence', 'deployment', 'tenant') then 'actor'
    when event || ': ' || from_state || ' to ' || to_state not in (
      'reserved: none to reserved',
      'renewed: reserved to reserved',
      'committed: reserved to active',
      'updated: active to active',
      'republished: active to active',
      'records-changed: active to active',
      'token-minted: reserved to reserved',
      'token-minted: active to active',
      'token-deleted: reserved to reserved',
      'token-deleted: active to active',
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
