-- Oldest build: 8
-- As before, for the table of the desired records.

create function check_dns_name(
  version bigint, applied_version bigint, desired jsonb, owned jsonb, previous_records jsonb, deleted_records jsonb,
  attempts integer, last_error text, failure text
) returns boolean
language plpgsql immutable parallel safe as $$
declare
  broken_rule text := case
    when jsonb_typeof(desired) <> 'array' then 'desired'
    when jsonb_typeof(owned) <> 'array' then 'owned'
    when jsonb_typeof(previous_records) <> 'array' then 'previous_records'
    when jsonb_typeof(deleted_records) <> 'array' then 'deleted_records'
    when applied_version > version then 'applied_version'
    when failure not in (
      'provider', 'zone', 'rejected', 'foreign-record', 'database-older', 'other-installation', 'imported'
    ) then 'failure'
    when (attempts = 0) <> (last_error is null) or (attempts = 0) <> (failure is null) then 'error_present'
    when applied_version >= version and attempts <> 0 then 'applied_no_error'
  end;
begin
  if broken_rule is null then return true; end if;
  raise check_violation using
    message = format('new row for relation "dns_names" violates check constraint "dns_names_%s_check"', broken_rule),
    table = 'dns_names', constraint = format('dns_names_%s_check', broken_rule);
end
$$;

alter table dns_names
  drop constraint dns_names_desired_check,
  drop constraint dns_names_owned_check,
  drop constraint dns_names_previous_records_check,
  drop constraint dns_names_deleted_records_check,
  drop constraint dns_names_applied_version_check,
  drop constraint dns_names_error_present_check,
  drop constraint dns_names_applied_no_error_check,
  drop constraint dns_names_failure_check,
  add constraint dns_names_check check (
    check_dns_name(
      version, applied_version, desired, owned, previous_records, deleted_records, attempts, last_error, failure
    )
  ) not valid;
