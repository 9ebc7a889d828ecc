-- Oldest build: 1
-- Renewals are counted instead of written to the history. While replicas of build 1 run, the counts are incomplete: that
-- build writes entries of renewals, and does not reset the count of a reservation that it replaces.

alter table pool_allocations add column renewal_count integer not null default 0;

-- In the entry that ends a renewed reservation: how often it was renewed, and its last expiry.
alter table allocation_history add column renewal_count integer, add column renewed_until timestamptz;
