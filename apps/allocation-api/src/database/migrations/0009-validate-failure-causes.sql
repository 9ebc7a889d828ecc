-- Oldest build: 8

alter table dns_names validate constraint dns_names_failure_check;
