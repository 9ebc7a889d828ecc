-- Oldest build: 2
--
-- Whether the cancellation of the run ends Terraform at once.
alter table deployments add column is_forced boolean not null default false;
