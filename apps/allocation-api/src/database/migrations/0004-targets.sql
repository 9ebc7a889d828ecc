-- Oldest build: 2
--
-- What the records of a name point to, in the fields of the API and in their normal form; null: `load_balancer_ip` alone.
-- `load_balancer_ip` is also the IPv4 address of a target, for the search and for older builds.
alter table pool_allocations add column target jsonb;

-- As in 0001, but an active name has an address or a target.
create or replace function check_pool_allocation(a pool_allocations) returns boolean
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
        or num_nonnulls(a.sovereign_fqdn, a.load_balancer_ip, a.target, a.committed_at) > 0
      then broken_rule := 'reserved_columns'; end if;
    elsif a.state = 'active' then
      if num_nonnulls(a.expires_at, a.cool_off_until) > 0 or num_nonnulls(a.load_balancer_ip, a.target) = 0
        or num_nulls(a.sovereign_fqdn, a.committed_at) > 0 or a.committed_at < a.reserved_at
      then broken_rule := 'active_columns'; end if;
    elsif a.state = 'released' then
      if a.expires_at is not null or num_nonnulls(a.lineage_id, a.cool_off_until) = 0
      then broken_rule := 'released_columns'; end if;
    elsif a.state = 'pool' then
      if num_nonnulls(a.expires_at, a.sovereign_fqdn, a.load_balancer_ip, a.target, a.committed_at) > 0
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

-- Builds before this column leave it as it is. When they give a name an address, or to another client, the target ends. They
-- do not write the records of an update of a name without an address, so that one is rejected. Drop it in the next release.
create function follow_older_build() returns trigger language plpgsql as $$
begin
  if new.state in ('reserved', 'pool') then
    new.target := null;
  elsif new.load_balancer_ip is distinct from (new.target ->> 'loadBalancerIP')::inet then
    if tg_op = 'UPDATE' and old.state = 'active' and old.load_balancer_ip is null then
      raise exception 'a build that does not know the target of the name cannot change it';
    end if;
    new.target := null;
  end if;
  return new;
end
$$;

create trigger follow_older_build before insert or update on pool_allocations
  for each row when (new.target is not null) execute function follow_older_build();
