-- Search finds a record of a zone by its description too, as it does everything else that has one.
drop trigger dns_records_search on dns_records;
create trigger dns_records_search after update or delete on dns_records
  for each row execute function keep_search_document('dns_record', 'name', 'fqdn,value,comment,type,description', 'fqdn');
drop trigger dns_records_search_new on dns_records;
create trigger dns_records_search_new after insert on dns_records
  referencing new table as fresh for each statement
  execute function add_search_documents('dns_record', 'name', 'fqdn,value,comment,type,description', 'fqdn');
-- Written again by the trigger above.
update dns_records set description = description where description <> '' and deleted_at is null;
