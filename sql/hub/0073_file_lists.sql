-- A company may have a hundred thousand files: the order by size had no index, and to count them read all rows. Equal
-- types stand in an index once, so that it is small and a count reads little.
create index files_by_size on files (company_id, bytes, id);
create index files_by_type on files (company_id, type);
