-- Search looks for names that begin with what was typed. Trigrams of a common beginning lead to half of all documents.
create index search_documents_prefix on search_documents (company_id, lower(name) text_pattern_ops);
