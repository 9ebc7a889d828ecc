-- Oldest build: 1
-- Times are milliseconds since the epoch by the clock of the slot, as in lease/lease.ts.

-- One row per slot that was ever written; never deleted, because generations must not repeat. Renewals change no index and
-- leave room for the next version of the row on its page.
create table leases (
  -- The name of the slot. U+0000, which Postgres does not store, is U+0001 U+0001; U+0001 is U+0001 U+0002.
  slot text collate "C" not null,
  -- Null: released.
  holder text collate "C",
  acquired_at bigint not null,
  written_at bigint not null,
  expires_at bigint,
  generation bigint not null,
  -- The generation_base of the epoch in which the row was written.
  generation_base bigint not null,
  transition_count bigint not null,
  constraint leases_pkey primary key (slot),
  constraint leases_held_check check ((holder is null) = (expires_at is null)),
  constraint leases_generation_check check (generation > generation_base)
) with (fillfactor = 50);

create table lease_history (
  slot text collate "C" not null,
  number bigint not null,
  generation bigint not null,
  at bigint not null,
  event text not null,
  actor text not null,
  from_holder text not null,
  to_holder text not null,
  -- Identifies the token of the request.
  token text not null,
  constraint lease_history_pkey primary key (slot, number),
  constraint lease_history_event_check check (event in ('acquired', 'released', 'clock-set-back', 'jumped'))
);

-- The history of the database itself: a new epoch starts when it may lack writes that were acknowledged before, because
-- another server took over or a backup was restored. The generation of a slot is that of its row plus the difference of
-- the bases, so that all slots jump at once, also those without a row.
create table lease_epochs (
  epoch integer not null,
  reason text not null,
  generation_base bigint not null,
  started_at timestamptz not null,
  -- What identifies the database in which the epoch started. A difference means that the database is another one.
  system_identifier text not null,
  database_oid oid not null,
  table_oid oid not null,
  timeline text not null,
  -- The start of the server process for which all of this was last compared.
  server_start timestamptz not null,
  constraint lease_epochs_pkey primary key (epoch),
  constraint lease_epochs_reason_check check (reason in ('created', 'promoted', 'restored', 'declared'))
);

-- Written by the health check.
create table lease_write_probes (
  slot integer not null,
  written_at timestamptz not null,
  constraint lease_write_probes_pkey primary key (slot)
);

-- The wall clock of the server. Tests replace this function.
create function lease_clock() returns bigint language sql volatile as $$
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
$$;

-- The last step of a statement that must not take effect after its caller has timed out; see packages/runtime/src/database/writer.ts.
create or replace function assert_in_time(server text, deadline_ms double precision, written bigint) returns boolean
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

-- The generation_base of the current epoch; an error if the database is not the one in which the epoch started. Each
-- statement calls it, so none reads or writes before the generations have jumped.
create function lease_generation_base() returns bigint language plpgsql volatile as $$
declare
  base bigint;
  is_current boolean;
begin
  if pg_is_in_recovery() then
    raise exception 'the server is a standby' using errcode = '25006';
  end if;
  select e.generation_base, e.server_start = pg_postmaster_start_time()
      and e.timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)
      and e.table_oid = e.tableoid
      and e.database_oid = (select d.oid from pg_database d where d.datname = current_database())
    into base, is_current from lease_epochs e order by e.epoch desc limit 1;
  if is_current is not true then
    raise exception 'the database may be another one than before' using errcode = '57PD3';
  end if;
  return base;
end
$$;

-- Compares the database with its newest epoch, and starts a new one if it is another database or if a restore is declared.
-- The base grows by more than all writes that can be missing: 2^20, and 100 per millisecond since the newest write that is
-- left, because a write takes more than 10 microseconds. The clocks of two servers may differ by an hour.
create function start_lease_epoch(is_declared boolean)
returns table (epoch integer, reason text, generation_base bigint, is_new boolean) language plpgsql volatile as $$
declare
  last lease_epochs;
  new lease_epochs;
begin
  lock table lease_epochs in exclusive mode;
  select * into last from lease_epochs e order by e.epoch desc limit 1;
  select 'lease_epochs'::regclass::oid, d.oid into new.table_oid, new.database_oid
    from pg_database d where d.datname = current_database();
  new.system_identifier := (select c.system_identifier::text from pg_control_system() c);
  new.timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  new.server_start := pg_postmaster_start_time();
  new.reason := case
    when is_declared then 'declared'
    when last.epoch is null then 'created'
    when new.system_identifier <> last.system_identifier or new.table_oid <> last.table_oid
      or new.database_oid <> last.database_oid then 'restored'
    when new.timeline <> last.timeline then 'promoted'
  end;
  if new.reason is null then
    if new.server_start <> last.server_start then
      update lease_epochs e set server_start = new.server_start where e.epoch = last.epoch;
    end if;
    return query select last.epoch, last.reason, last.generation_base, false;
    return;
  end if;
  new.epoch := coalesce(last.epoch, 0) + 1;
  new.generation_base := case when new.reason = 'created' then 0 else coalesce(last.generation_base, 0) + 1048576
    + 100 * (3600000 + greatest(0, lease_clock() - coalesce((select max(l.written_at) from leases l), 0))) end;
  new.started_at := clock_timestamp();
  insert into lease_epochs select new.*;
  return query select new.epoch, new.reason, new.generation_base, true;
end
$$;

-- Adds a transition to the history of a slot, of which the newest 50 are kept.
create function add_lease_transition(
  slot text, number bigint, generation bigint, at bigint, event text, actor text, from_holder text, to_holder text, token text
) returns void language sql volatile as $$
  insert into lease_history (slot, number, generation, at, event, actor, from_holder, to_holder, token)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9);
  delete from lease_history h where h.slot = $1 and h.number = $2 - 50;
$$;

-- Executes writes, in the order of their slots. This is `advanceClock` and `decide` of lease/lease.ts: a test compares them.
-- Each change names the state on which it was decided, so a concurrent change of the row makes it decide again. A request of
-- the kind `observe` changes nothing but a clock that was set back.
create function write_leases(lock_wait_is_limited boolean, requests jsonb)
returns table (
  "position" integer, outcome text, holder text, acquired_at bigint, written_at bigint, expires_at bigint, generation bigint,
  decided_at bigint
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
      position integer, slot text, kind text, holder text, ttl_ms bigint, generation bigint, token text
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
        else
          next.holder := request.holder;
          next.expires_at := at + request.ttl_ms;
          if result = 'granted' then next.acquired_at := greatest(at, coalesce(lease.acquired_at + 1, at)); end if;
        end if;
        if exists_already then
          update leases l set
            holder = next.holder, acquired_at = next.acquired_at, written_at = next.written_at,
            expires_at = next.expires_at, generation = next.generation, generation_base = next.generation_base,
            transition_count = next.transition_count
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
        next.generation, at;
      exit;
    end loop;
  end loop;
end
$$;
