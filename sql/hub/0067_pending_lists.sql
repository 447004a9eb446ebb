-- What was written waits beside a GIN index to be sorted into it, and every search reads all of what waits: 4 MB of each
-- index after many rows were written at once, as a migration does, until autovacuum comes by. Each of the four statements
-- of a search took 0.1 s of CPU for that. A short list costs who writes a document a twelfth more, no list twice as much.
do $$
declare
  named text;
begin
  foreach named in array array['search_documents_exact', 'search_documents_text', 'search_documents_name',
    'ip_addresses_text', 'ip_addresses_tags', 'iac_runs_text', 'files_name'] loop
    execute format('alter index %I set (gin_pending_list_limit = 128)', named);
    perform gin_clean_pending_list(named::regclass);
  end loop;
end $$;
