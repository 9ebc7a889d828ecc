-- Oldest build: 2
select 1;
