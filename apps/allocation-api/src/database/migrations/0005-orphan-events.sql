-- Oldest build: 1

-- The history events of records that no row explained. Older rows fulfil the constraint, because it only allows more.
alter table allocation_history
  drop constraint allocation_history_transition_check,
  add constraint allocation_history_transition_check check (
    (event, from_state, to_state) in (
      ('reserved', 'none', 'reserved'),
      ('renewed', 'reserved', 'reserved'),
      ('committed', 'reserved', 'active'),
      ('updated', 'active', 'active'),
      ('republished', 'active', 'active'),
      ('released', 'reserved', 'none'),
      ('released', 'active', 'none'),
      ('expired', 'reserved', 'none'),
      ('cool-off-lifted', 'none', 'none'),
      ('adopted', 'none', 'active'),
      ('orphan-removed', 'none', 'none'),
      ('published', 'active', 'active'),
      ('withdrawn', 'none', 'none'),
      ('failing', 'active', 'active'),
      ('failing', 'none', 'none'),
      ('repaired', 'active', 'active'),
      ('repaired', 'none', 'none')
    )
  ) not valid;
