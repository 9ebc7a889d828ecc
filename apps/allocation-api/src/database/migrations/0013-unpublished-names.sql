-- Oldest build: 8
-- As before, for the names whose records are not published.
create index if not exists dns_names_unpublished_idx on dns_names (zone, subdomain) where applied_version < version;
create index if not exists dns_names_failing_idx on dns_names (zone, subdomain)
  where applied_version < version and last_error is not null;
