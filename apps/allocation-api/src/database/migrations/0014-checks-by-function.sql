-- Oldest build: 8

-- One function per table instead of a constraint per rule: Postgres parses the stored expressions of all constraints of a
-- table again in each statement, which was a quarter of a reserve. A function is parsed once per session. It raises the error
-- of the constraint that it replaces, with its name. A null is valid where a rule compares it, as in a constraint.

create function check_pool_allocation(
  pool_domain text, subdomain text, state text, reserved_at timestamptz, expires_at timestamptz, cool_off_until timestamptz,
  lineage_id uuid, replaced_state text, token_hash bytea, former_token_hash bytea, created_by text, sovereign_fqdn text,
  load_balancer_ip inet, committed_at timestamptz
) returns boolean
language plpgsql immutable parallel safe as $$
declare
  broken_rule text := case
    when pool_domain !~ '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$' collate "C" or length(pool_domain) > 253 then 'pool_domain'
    when subdomain !~ '^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$' collate "C" or substr(subdomain, 3, 2) = '--' then 'subdomain'
    when length(token_hash) <> 32 then 'token_hash'
    when length(former_token_hash) <> 32 then 'former_token_hash'
    when length(created_by) > 253 then 'created_by'
    when family(load_balancer_ip) <> 4 or masklen(load_balancer_ip) <> 32 then 'load_balancer_ip'
    when replaced_state not in ('reserved', 'released') then 'replaced_state'
    when state = 'reserved' then case
      when expires_at is null or expires_at <= reserved_at
        or num_nonnulls(sovereign_fqdn, load_balancer_ip, committed_at) > 0 then 'reserved_columns'
    end
    when state = 'active' then case
      when num_nonnulls(expires_at, cool_off_until) > 0 or num_nulls(sovereign_fqdn, load_balancer_ip, committed_at) > 0
        or committed_at < reserved_at then 'active_columns'
    end
    when state = 'released' then case
      when expires_at is not null or num_nonnulls(lineage_id, cool_off_until) = 0 then 'released_columns'
    end
    when state = 'pool' then case
      when num_nonnulls(expires_at, sovereign_fqdn, load_balancer_ip, committed_at) > 0 then 'pool_columns'
    end
    else 'state'
  end;
begin
  if broken_rule is null then return true; end if;
  raise check_violation using
    message = format('new row for relation "pool_allocations" violates check constraint "pool_allocations_%s_check"', broken_rule),
    table = 'pool_allocations', constraint = format('pool_allocations_%s_check', broken_rule);
end
$$;

alter table pool_allocations
  drop constraint pool_allocations_pool_domain_check,
  drop constraint pool_allocations_subdomain_check,
  drop constraint pool_allocations_state_check,
  drop constraint pool_allocations_replaced_state_check,
  drop constraint pool_allocations_token_hash_check,
  drop constraint pool_allocations_former_token_hash_check,
  drop constraint pool_allocations_created_by_check,
  drop constraint pool_allocations_load_balancer_ip_check,
  drop constraint pool_allocations_reserved_columns_check,
  drop constraint pool_allocations_active_columns_check,
  drop constraint pool_allocations_released_columns_check,
  drop constraint pool_allocations_pool_columns_check,
  add constraint pool_allocations_check check (
    check_pool_allocation(
      pool_domain, subdomain, state, reserved_at, expires_at, cool_off_until, lineage_id, replaced_state, token_hash,
      former_token_hash, created_by, sovereign_fqdn, load_balancer_ip, committed_at
    )
  ) not valid;

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

alter table allocation_history
  drop constraint allocation_history_transition_check,
  drop constraint allocation_history_actor_check,
  add constraint allocation_history_check check (check_history_entry(event, from_state, to_state, actor)) not valid;
