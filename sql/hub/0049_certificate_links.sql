-- A certificate is served where a virtual server names it: a deployment made by a link, kept by the database whoever
-- writes the virtual server, so that it also goes and comes back with the device.
create function link_certificates(
  link_kind text, company uuid, target uuid, wanted uuid[], link_host text, link_port integer, link_sni text
) returns void language sql as $$
  with gone as (
    delete from certificate_deployments d
    where d.company_id = company and d.target_id = target and d.kind = link_kind and d.made_by = 'link'
      and not (d.certificate_id = any(wanted) and d.host = link_host and d.port = link_port
        and d.sni is not distinct from link_sni)
    returning d.certificate_id),
  made as (
    insert into certificate_deployments (id, company_id, certificate_id, kind, target_id, host, port, sni, made_by)
    select gen_random_uuid(), company, x.id, link_kind, target, link_host, link_port, link_sni, 'link'
    from unnest(wanted) x (id)
    on conflict do nothing returning certificate_id)
  -- What is said of the certificates follows within a minute.
  update certificates set judge_at = now()
  where company_id = company and id in (select certificate_id from gone union select certificate_id from made)
$$;

create function keep_virtual_server_links() returns trigger language plpgsql as $$
declare
  r virtual_servers := case when tg_op = 'DELETE' then old else new end;
begin
  perform link_certificates('virtual_server', r.company_id, r.id,
    case when tg_op <> 'DELETE' and r.deleted_at is null and r.enabled then r.certificate_ids else '{}' end,
    r.address, r.port, null);
  return null;
end $$;
create trigger virtual_servers_certificates
  after insert or delete or update of certificate_ids, address, port, enabled, deleted_at on virtual_servers
  for each row execute function keep_virtual_server_links();
update virtual_servers set certificate_ids = certificate_ids where cardinality(certificate_ids) > 0;
