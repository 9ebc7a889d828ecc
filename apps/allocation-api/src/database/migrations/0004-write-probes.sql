-- Oldest build: 1
-- The readiness probe writes here, to find out whether the database accepts writes. Each replica uses one of a fixed
-- number of rows, so that the table does not grow and a locked row affects few replicas.
create table write_probes (
  slot smallint not null,
  written_at timestamptz not null,
  constraint write_probes_pkey primary key (slot)
);
