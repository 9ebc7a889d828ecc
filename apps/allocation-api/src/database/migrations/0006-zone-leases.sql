-- Oldest build: 2
--
-- The lock of a zone, or of every zone of an account, is a lease: nobody keeps a transaction open for it.
-- Builds before this one lock the table for as long as a call of the DNS provider, one after the other, and no request needs it.
set local lock_timeout = '15s';
alter table dns_zone_locks rename to zone_leases;
alter table zone_leases rename constraint dns_zone_locks_pkey to zone_leases_pkey;
alter table zone_leases
  -- The acquisition that has the lease; null: it is free.
  add column holder uuid,
  -- Every change raises it. A lease whose version stays the same for too long has lost its holder.
  add column version bigint not null default 0,
  add column changed_at timestamptz not null default now();

-- Builds before this one lock a row of this view in an open transaction. They find none of a lease that is held, and what
-- they have locked is no free lease. After a rollback to them, a lease whose holder died is free after a minute.
create view dns_zone_locks as
  select name from zone_leases where holder is null or changed_at < clock_timestamp() - interval '1 minute';

-- Fails unless the acquisition has the lease, and keeps others from taking it until the transaction ends.
create function assert_zone_lease(lease_name text, lease_holder uuid) returns boolean language plpgsql as $$
begin
  perform from zone_leases where name = lease_name and holder = lease_holder for key share;
  if not found then
    raise exception 'zone lock lost: %', lease_name using errcode = 'lock_not_available';
  end if;
  return true;
end
$$;
