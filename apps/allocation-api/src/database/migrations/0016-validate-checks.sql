-- Oldest build: 8
-- A lock that permits reads and writes, for as long as the check of the existing rows takes.
alter table pool_allocations validate constraint pool_allocations_check;
alter table allocation_history validate constraint allocation_history_check;
alter table dns_names validate constraint dns_names_check;
