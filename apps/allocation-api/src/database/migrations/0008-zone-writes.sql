-- Oldest build: 8
-- An older build would write to a zone whose writes are stopped, and would not count its writes.

-- Identifies this database to the zones that it writes. A restored copy has the same id.
create table installation (
  only_row boolean not null default true,
  id uuid not null default gen_random_uuid(),
  constraint installation_pkey primary key (only_row),
  constraint installation_only_row_check check (only_row)
);

insert into installation default values;

-- The writes of each zone. A row stays when its pool is no longer used: the marker in the zone has its number.
create table dns_zone_writes (
  zone text collate "C" not null,
  -- The number of the last write. It is raised before the write, which sets the zone's marker to it. A column and not a
  -- sequence, because a dump or a standby can have a newer value of a sequence than of the tables.
  serial bigint not null default 0,
  -- The provider that the zone was published with; null: none yet.
  provider_kind text collate "C",
  -- Why nothing is written to the zone until an operator resumes it.
  stopped_cause text,
  constraint dns_zone_writes_pkey primary key (zone),
  constraint dns_zone_writes_serial_check check (serial >= 0),
  constraint dns_zone_writes_stopped_cause_check check (
    stopped_cause in ('database-older', 'other-installation', 'imported')
  )
);

-- The records that a provider had when the zone was moved to another one. An operator deletes them there.
create table dns_former_records (
  zone text collate "C" not null,
  provider_kind text collate "C" not null,
  name text collate "C" not null,
  type text collate "C" not null,
  -- The values that this service wrote last; null: unknown.
  record_values jsonb,
  constraint dns_former_records_pkey primary key (zone, provider_kind, name, type)
);

alter table dns_names drop constraint dns_names_failure_check;
alter table dns_names add constraint dns_names_failure_check check (
  failure in ('provider', 'zone', 'rejected', 'foreign-record', 'database-older', 'other-installation', 'imported')
) not valid;
