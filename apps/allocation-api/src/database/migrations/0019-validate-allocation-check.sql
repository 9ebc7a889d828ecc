-- Oldest build: 8
-- A lock that permits reads and writes, for as long as the check of the existing rows takes.
alter table pool_allocations validate constraint pool_allocations_check;
