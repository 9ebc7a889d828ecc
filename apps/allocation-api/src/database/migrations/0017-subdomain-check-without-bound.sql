-- Oldest build: 8
-- The same rules. A bounded repetition of a regular expression has a state for each of its repetitions: that of the subdomain
-- was a sixteenth of the server's instructions for a reserve among others.

create or replace function check_pool_allocation(
  pool_domain text, subdomain text, state text, reserved_at timestamptz, expires_at timestamptz, cool_off_until timestamptz,
  lineage_id uuid, replaced_state text, token_hash bytea, former_token_hash bytea, created_by text, sovereign_fqdn text,
  load_balancer_ip inet, committed_at timestamptz
) returns boolean
language plpgsql immutable parallel safe as $$
declare
  broken_rule text := case
    when pool_domain !~ '^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$' collate "C" or length(pool_domain) > 253 then 'pool_domain'
    when subdomain !~ '^[a-z]([a-z0-9-]*[a-z0-9])?$' collate "C" or length(subdomain) > 63 or substr(subdomain, 3, 2) = '--'
      then 'subdomain'
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
