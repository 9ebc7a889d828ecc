-- Oldest build: 1

-- Names that were active before, as far as the history no longer shows it: the next holder gets their records purged.
create table former_names (
  pool_domain text collate "C" not null,
  subdomain text collate "C" not null,
  constraint former_names_pkey primary key (pool_domain, subdomain)
);

-- Only the functions below delete history. They set the parameter for as long as they run. They set it in their body,
-- because only a superuser may attach a parameter of its own to a function.
create or replace function reject_history_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and current_setting('allocation_api.deletes_history', true) = 'on' then
    return null;
  end if;
  raise exception '% is append-only', tg_table_name using errcode = 'integrity_constraint_violation';
end
$$;

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

-- As above. The entry of the creation stays as long as the lineage exists: it says whose the infrastructure is.
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
