-- Oldest build: 1

-- The last step of a statement that must not take effect after its caller has timed out. `written` is an expression over
-- the parts of the statement that write: it is evaluated first, so the statement waits for no lock after this function.
-- `server` is the start of the server process by whose clock the deadline was calculated. The service knows the SQLSTATEs.
create function assert_in_time(server text, deadline_ms double precision, written bigint) returns boolean
language plpgsql volatile as $$
begin
  if extract(epoch from pg_postmaster_start_time())::text <> server then
    raise exception 'the deadline is for another server' using errcode = '57PD1';
  end if;
  if extract(epoch from clock_timestamp()) * 1000 >= deadline_ms then
    raise exception 'the deadline of the request has passed' using errcode = '57PD2';
  end if;
  return true;
end
$$;
