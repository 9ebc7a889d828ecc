-- Oldest build: 8
-- The searches of operators. Each index has the order of its list, so that a page reads only its own rows. On a large table,
-- build them before the upgrade with `create index concurrently`.
create index if not exists pool_allocations_address_idx on pool_allocations (load_balancer_ip, pool_domain, subdomain)
  where state = 'active';
create index if not exists pool_allocations_created_by_idx
  on pool_allocations (created_by collate "C", pool_domain, subdomain) where state <> 'pool';
create index if not exists pool_allocations_reserved_idx on pool_allocations (pool_domain, subdomain)
  where state = 'reserved';
create index if not exists pool_allocations_cool_off_idx on pool_allocations (pool_domain, subdomain)
  where lineage_id is null and cool_off_until is not null;
create index if not exists pool_allocations_held_idx on pool_allocations (pool_domain, subdomain)
  where lineage_id is not null and state <> 'active';
