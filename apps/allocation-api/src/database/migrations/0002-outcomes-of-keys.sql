-- Oldest build: 2
--
-- The outcome of a keyed request moves into the row of its key. Rejections are not kept: a retry decides again.
alter table idempotency_keys
  add column result jsonb,
  -- The token that the client got with the outcome derives from the Idempotency-Key and `salt`.
  add column salt bytea,
  -- Of an outcome of schema 1: the token, encrypted under a key that is derived from the two.
  add column sealed bytea;

update idempotency_keys k set result = r.result, salt = r.salt, sealed = r.sealed
from idempotency_results r
where r.key_hash = k.key_hash
  and r.result ->> 'outcome' in ('granted', 'committed', 'updated', 'released', 'created');

delete from idempotency_keys where result is null;

drop table idempotency_results;

-- One function is the constraint, as for the tables of 0001.
create function check_idempotency_key(k idempotency_keys) returns boolean
language plpgsql immutable parallel safe as $$
declare
  broken_rule text := case
    when length(k.key_hash) <> 32 then 'key_hash'
    when length(k.fingerprint) <> 32 then 'fingerprint'
    when length(k.salt) <> 32 then 'salt'
  end;
begin
  if broken_rule is null then return true; end if;
  raise check_violation using
    message = format('new row for relation "idempotency_keys" violates check constraint "idempotency_keys_%s_check"', broken_rule),
    table = 'idempotency_keys', constraint = format('idempotency_keys_%s_check', broken_rule);
end
$$;

alter table idempotency_keys
  alter column result set not null,
  drop constraint idempotency_keys_key_hash_check,
  drop constraint idempotency_keys_fingerprint_check,
  add constraint idempotency_keys_check check (check_idempotency_key(idempotency_keys));

-- Undoes a statement that would store a second outcome under a key.
create function reject_duplicate_key() returns boolean language plpgsql as $$
begin
  raise unique_violation using
    message = 'another request has stored an outcome under the key', table = 'idempotency_keys',
    constraint = 'idempotency_keys_pkey';
end
$$;

-- What the history needs of the reservation that a row replaced, beside `replaced_state`.
alter table pool_allocations
  add column replaced_created_by text,
  add column replaced_renewal_count integer,
  add column replaced_expires_at timestamptz;
