-- Rows in every table of version 1, as its build writes them. The token of each name is its name.
insert into pools (domain, listed_at) values ('pool.test', '2026-01-01T00:00:00Z');

insert into lineages (id, sovereign_fqdn, pool_domain, subdomain, has_infrastructure, infrastructure_changed_at, created_at)
values
  ('00000000-0000-4000-8000-000000000001', 'cluster.pool.test', 'pool.test', 'cluster', true, '2026-01-01T00:02:00Z', '2026-01-01T00:00:00Z'),
  ('00000000-0000-4000-8000-000000000002', 'tenant.example', null, null, false, '2026-01-01T00:02:00Z', '2026-01-01T00:00:00Z');

insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, cool_off_until, lineage_id, replaced_state,
  token_hash, created_by, sovereign_fqdn, load_balancer_ip, committed_at)
values
  ('pool.test', 'kept', 'reserved', '2026-01-01T00:00:00Z', '2126-01-01T00:00:00Z', null, null, null, sha256('kept'), 'tests', null, null, null),
  ('pool.test', 'again', 'reserved', '2026-01-01T00:00:00Z', '2126-01-01T00:00:00Z', '2126-01-02T00:00:00Z', null, 'released', sha256('again'), 'tests', null, null, null),
  ('pool.test', 'acme', 'active', '2026-01-01T00:00:00Z', null, null, null, null, sha256('acme'), 'tests', 'acme.pool.test', '192.0.2.1', '2026-01-01T00:01:00Z'),
  ('pool.test', 'cluster', 'active', '2026-01-01T00:00:00Z', null, null, '00000000-0000-4000-8000-000000000001', null, sha256('cluster'), 'tests', 'cluster.pool.test', '192.0.2.2', '2026-01-01T00:01:00Z'),
  ('pool.test', 'cooling', 'released', '2026-01-01T00:00:00Z', null, '2126-01-01T00:00:00Z', null, null, sha256('cooling'), 'tests', null, null, null);

insert into allocation_history (pool_domain, subdomain, at, event, from_state, to_state, actor, address, created_by, request_id, detail, deleted_records)
values
  ('pool.test', 'acme', '2026-01-01T00:00:00Z', 'reserved', 'none', 'reserved', 'in-cluster', '192.0.2.9', 'tests', 'r1', null, null),
  ('pool.test', 'acme', '2026-01-01T00:00:30Z', 'renewed', 'reserved', 'reserved', 'in-cluster', '192.0.2.9', 'tests', 'r2', null, null),
  ('pool.test', 'acme', '2026-01-01T00:01:00Z', 'committed', 'reserved', 'active', 'in-cluster', '192.0.2.9', 'tests', 'r3', null, null),
  ('pool.test', 'acme', '2026-01-01T00:01:01Z', 'published', 'active', 'active', 'convergence', null, 'tests', null, null, null),
  ('pool.test', 'cooling', '2026-01-01T00:02:00Z', 'released', 'active', 'none', 'operator', '192.0.2.9', 'tests', 'r4', null, null),
  ('pool.test', 'cooling', '2026-01-01T00:02:01Z', 'withdrawn', 'none', 'none', 'convergence', null, 'tests', null, null, '[{"name": "x.cooling.pool.test", "type": "TXT"}]');

insert into idempotency_keys (key_hash, fingerprint, expires_at) values (sha256('key'), sha256('request'), '2126-01-01T00:00:00Z');
insert into idempotency_results (key_hash, result, salt, sealed) values (sha256('key'), '{"outcome": "granted"}', sha256('salt'), '\x02');

insert into dns_zone_locks (name) values ('pool.test');
insert into dns_zones (zone, synced_at, drift_checked_at, next_drift_check_at)
values ('pool.test', '2026-01-01T00:03:00Z', '2026-01-01T00:03:00Z', '2126-01-01T00:00:00Z');
insert into dns_names (zone, subdomain, version, desired, changed_at, attempted_version, applied_version, applied_at, owned, attempts,
  next_attempt_at, failure, last_error)
values
  ('pool.test', 'acme', nextval('dns_version'), '[{"name": "acme.pool.test", "type": "A", "ttl": 60, "values": ["192.0.2.1"]}]', '2026-01-01T00:01:00Z',
    1, 1, '2026-01-01T00:01:01Z', '[{"name": "acme.pool.test", "type": "A"}]', 0, '2026-01-01T00:01:00Z', null, null),
  ('pool.test', 'cluster', nextval('dns_version'), '[{"name": "cluster.pool.test", "type": "A", "ttl": 60, "values": ["192.0.2.2"]}]', '2026-01-01T00:01:00Z',
    2, 0, null, '[]', 3, '2126-01-01T00:00:00Z', 'provider', 'the provider did not respond');

insert into bucket_claims (bucket, lineage_id, sovereign_fqdn, is_permanent, claimed_at)
values ('catalyst-cluster-pool-test', '00000000-0000-4000-8000-000000000001', 'cluster.pool.test', true, '2026-01-01T00:00:00Z');

insert into deployments (id, lineage_id, status, operation, request, sovereign_fqdn, reservation_token_hash, token_hash, result, module,
  is_applied, error, started_at, finished_at, line_count)
values
  ('00000000-0000-4000-8000-000000000011', '00000000-0000-4000-8000-000000000001', 'ready', 'create',
    '{"orgName": "Acme", "objectStorageAccessKey": "<redacted>", "objectStorageSecretKey": "<redacted>"}', 'cluster.pool.test',
    sha256('cluster'), sha256('deployment'), '{"controlPlaneIP": "192.0.2.2", "loadBalancerIP": "192.0.2.2"}', 'local@1', true, null,
    '2026-01-01T00:00:00Z', '2026-01-01T00:02:00Z', 1),
  ('00000000-0000-4000-8000-000000000012', '00000000-0000-4000-8000-000000000002', 'failed', 'create',
    '{"orgName": "Tenant", "objectStorageAccessKey": "", "objectStorageSecretKey": ""}', 'tenant.example',
    null, sha256('deployment'), null, null, false, 'terraform failed', '2026-01-01T00:00:00Z', '2026-01-01T00:02:00Z', 0);
insert into deployment_history (at, event, deployment_id, lineage_id, sovereign_fqdn, org_name, actor, address, request_id, detail)
values ('2026-01-01T00:00:00Z', 'created', '00000000-0000-4000-8000-000000000011', '00000000-0000-4000-8000-000000000001',
  'cluster.pool.test', 'Acme', 'in-cluster', '192.0.2.9', 'r5', null);
insert into deployment_log_lines (deployment_id, seq, at, phase, level, message)
values ('00000000-0000-4000-8000-000000000011', 1, '2026-01-01T00:01:00Z', 'apply', 'info', 'Apply complete');
insert into domain_challenges (value_hash, domain, expires_at) values (sha256('value'), 'tenant.example', '2126-01-01T00:00:00Z');

insert into local_dns_zones (zone, serial) values ('pool.test', 1);
insert into local_dns_record_sets (zone, reversed_name, type, ttl, record_values)
values ('pool.test', 'test.pool.acme', 'A', 60, '{192.0.2.1}');

insert into former_names (pool_domain, subdomain) values ('pool.test', 'gone');
insert into dns_zone_writes (zone, serial, provider_kind, stopped_cause, stopped_at)
values ('pool.test', 7, 'local', null, null), ('old.test', 3, 'local', 'imported', '2026-01-01T00:03:00Z');
insert into dns_former_records (zone, provider_kind, name, type, record_values)
values ('pool.test', 'powerdns', 'acme.pool.test', 'A', '["192.0.2.1"]');

insert into operator_sessions (id_hash, token_mac, created_at, last_used_at)
values (sha256('session'), sha256('mac'), '2026-01-01T00:00:00Z', '2026-01-01T00:01:00Z');
insert into replicas (id, version, node_version, started_at, last_seen_at, is_ready, circuit_open)
values ('00000000-0000-4000-8000-000000000021', '1.0.0', '24.0.0', '2026-01-01T00:00:00Z', '2026-01-01T00:01:00Z', true, false);
insert into replica_samples (replica_id, at, requests, errors, request_ms, event_loop_ms, active_runs, pending_names, failing_names)
values ('00000000-0000-4000-8000-000000000021', '2026-01-01T00:01:00Z', 10, 1, 2.5, 0.5, 0, 1, 0);
insert into pool_samples (pool_domain, at, reserved, active, cooling_off, held)
values ('pool.test', '2026-01-01T00:01:00Z', 2, 2, 1, 1);
insert into write_probes (slot, written_at) values (1, '2026-01-01T00:00:00Z');
