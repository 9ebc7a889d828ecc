-- Oldest build: 2
--
-- Records of an earlier holder that the provider still has although the name is published, as a text; null: none are known.
alter table dns_names add column leftover text;

-- The last write of the zone that the provider has confirmed with its marker, and when.
alter table dns_zone_writes
  add column confirmed_serial bigint not null default 0,
  add column confirmed_at timestamptz;
