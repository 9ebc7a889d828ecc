-- Oldest build: 1

-- What the holder shows to readers. Null: nothing.
alter table leases add column value text collate "C";

-- As before, with the value. Its result has a new column, so it cannot be replaced; a build of version 1 ignores it.
drop function write_leases(boolean, jsonb);
create function write_leases(lock_wait_is_limited boolean, requests jsonb)
returns table (
  "position" integer, outcome text, holder text, acquired_at bigint, written_at bigint, expires_at bigint, generation bigint,
  decided_at bigint, value text
) language plpgsql volatile as $$
#variable_conflict use_column
declare
  base bigint := lease_generation_base();
  request record;
  lease leases;
  next leases;
  exists_already boolean;
  is_own boolean;
  is_live boolean;
  result text;
  wall bigint;
  at bigint;
begin
  -- An acknowledged write is durable, whatever the default of the role or the database is.
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  for request in
    select r.* from jsonb_to_recordset(requests) as r (
      position integer, slot text, kind text, holder text, ttl_ms bigint, generation bigint, token text, value text
    ) order by r.slot collate "C", r.position
  loop
    loop
      select l.* into lease from leases l where l.slot = request.slot;
      exists_already := found;
      wall := lease_clock();
      if exists_already and lease.generation_base > base then
        raise exception 'another epoch has started' using errcode = '57PD3';
      end if;

      if exists_already and wall < lease.written_at - 60000 then
        update leases l set
          written_at = wall, expires_at = wall + (lease.expires_at - lease.written_at),
          transition_count = lease.transition_count + 1
        where l.slot = lease.slot and l.generation = lease.generation and l.generation_base = lease.generation_base
          and l.written_at = lease.written_at;
        if found then
          perform add_lease_transition(lease.slot, lease.transition_count + 1,
            lease.generation + (base - lease.generation_base), wall, 'clock-set-back', '', coalesce(lease.holder, ''),
            coalesce(lease.holder, ''), '');
        end if;
        continue;
      end if;

      at := greatest(wall, lease.written_at);
      next := lease;
      next.slot := request.slot;
      next.generation := coalesce(lease.generation + (base - lease.generation_base), 0);
      is_own := coalesce(lease.holder = request.holder, false);
      is_live := coalesce(at < lease.expires_at, false);
      result := case
        when request.kind = 'observe' then 'observed'
        when request.kind = 'release' and not exists_already then 'absent'
        when request.generation <> next.generation then 'generation'
        when request.kind in ('release', 'renew') and not is_own then 'not-holder'
        when request.kind = 'release' then 'released'
        when request.kind = 'renew' and not is_live then 'expired'
        when is_live and not is_own then 'held'
        when is_live then 'renewed'
        else 'granted'
      end;
      if result in ('granted', 'renewed', 'released') then
        if not exists_already then next.generation := base; end if;
        next.generation := next.generation + 1;
        next.generation_base := base;
        next.written_at := at;
        next.transition_count := coalesce(lease.transition_count, 0)
          + (exists_already and lease.generation_base <> base)::integer
          + (result <> 'renewed')::integer;
        if result = 'released' then
          next.holder := null;
          next.expires_at := null;
          next.value := null;
        else
          next.holder := request.holder;
          next.expires_at := at + request.ttl_ms;
          if result = 'granted' then
            next.acquired_at := greatest(at, coalesce(lease.acquired_at + 1, at));
            next.value := null;
          end if;
          next.value := nullif(coalesce(request.value, next.value), '');
        end if;
        if exists_already then
          update leases l set
            holder = next.holder, acquired_at = next.acquired_at, written_at = next.written_at,
            expires_at = next.expires_at, generation = next.generation, generation_base = next.generation_base,
            transition_count = next.transition_count, value = next.value
          where l.slot = lease.slot and l.generation = lease.generation and l.generation_base = lease.generation_base
            and l.written_at = lease.written_at;
        else
          insert into leases select next.* on conflict do nothing;
        end if;
        continue when not found;
        if exists_already and lease.generation_base <> base then
          perform add_lease_transition(lease.slot, lease.transition_count + 1, request.generation, at, 'jumped', '',
            coalesce(lease.holder, ''), coalesce(lease.holder, ''), '');
        end if;
        if result <> 'renewed' then
          perform add_lease_transition(next.slot, next.transition_count, next.generation, at,
            case result when 'granted' then 'acquired' else result end, request.holder, coalesce(lease.holder, ''),
            coalesce(next.holder, ''), request.token);
        end if;
      end if;
      return query select request.position, result, next.holder, next.acquired_at, next.written_at, next.expires_at,
        next.generation, at, next.value;
      exit;
    end loop;
  end loop;
end
$$;
