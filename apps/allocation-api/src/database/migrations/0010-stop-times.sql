-- Oldest build: 8

-- What was changed after a zone was stopped is newer than what the zone has.
alter table dns_zone_writes add column stopped_at timestamptz;
