-- Oldest build: 1
-- A lock that permits reads and writes, for as long as the check of the existing rows takes.
alter table allocation_history validate constraint allocation_history_transition_check;
