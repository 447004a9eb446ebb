-- Whether a wide-area incident could claim a machine that is lost is asked with the event: the machines of its subnet and datacenter.
create index servers_datacenter on servers (company_id, datacenter) where deleted_at is null and datacenter is not null;
create index servers_subnet on servers (company_id, subnet_id) where deleted_at is null and subnet_id is not null;
